-- A person in Neovim, whose LSP client is told to start `pilotfish lsp`: reads a file, types into it, saves it.
-- What was seen after each step is written as JSON into the file that $REPORT names.

local PATIENCE = 120000 -- milliseconds for each thing that must come, on a busy machine
local given = vim.fn.json_decode(vim.env.GIVEN)
local seen, shown = {}, {}

local function diagnostics()
  return vim.tbl_map(function(one) return one.message end, vim.diagnostic.get(0))
end

-- The text that a hover shows, or why there is none.
local function hover()
  local params = { textDocument = vim.lsp.util.make_text_document_params(), position = { line = 0, character = 4 } }
  local answers = vim.lsp.buf_request_sync(0, "textDocument/hover", params, PATIENCE) or {}
  for _, answer in pairs(answers) do
    return answer.error and { refused = answer.error.message } or { text = answer.result.contents.value }
  end
  return {}
end

local function type_text(text)
  vim.api.nvim_buf_set_lines(0, 0, -1, true, vim.split(text, "\n"))
end

local function wait_for(what, condition)
  if not vim.wait(PATIENCE, condition, 20) then
    error("waited in vain for " .. what)
  end
end

local function run()
  vim.cmd("edit " .. given.file)
  local show = vim.lsp.handlers["window/showMessage"]
  local client = vim.lsp.start_client({
    name = "pilotfish",
    cmd = given.command,
    root_dir = given.root,
    handlers = {
      ["window/showMessage"] = function(failure, message, ...)
        table.insert(shown, message.message)
        return show(failure, message, ...)
      end,
    },
  })
  vim.lsp.buf_attach_client(0, client)
  wait_for("the diagnostics of the saved file", function() return #vim.diagnostic.get(0) == 1 end)
  seen.saved = { diagnostics = diagnostics(), hover = hover() }

  type_text(given.typed .. "#")
  seen.typing = { hover = hover() }
  type_text(given.typed)
  seen.unsaved = { hover = hover() }
  wait_for("the message", function() return #shown > 0 end)
  wait_for("the end of the old diagnostics", function() return #vim.diagnostic.get(0) == 0 end)
  seen.unsaved.messages = vim.fn.execute("messages")

  vim.cmd("silent write")
  wait_for("the diagnostics of what was typed", function() return #vim.diagnostic.get(0) == 2 end)
  seen.again = { diagnostics = diagnostics(), hover = hover() }
end

local ok, failure = pcall(run)
seen.failure = not ok and tostring(failure) or nil
seen.shown = shown
vim.fn.writefile({ vim.fn.json_encode(seen) }, vim.env.REPORT)
vim.lsp.stop_client(vim.lsp.get_active_clients())
vim.cmd("qall!")
