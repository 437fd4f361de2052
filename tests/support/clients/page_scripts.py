"""What tests of the live page run inside the browser."""

INJECTIONS = (
    "document.body.innerHTML = '<b>x</b>'",
    "document.createElement('script').textContent = 'pwned = 1'",
    "document.body.setAttribute('onclick', 'pwned = 1')",
    "new DOMParser().parseFromString('<b>x</b>', 'text/html')",
)
"""Ways to make text a program; the page's policy forbids each."""

NAMELESS = """
() => [...document.querySelectorAll('input, button, summary, a, svg[role=img], section, ul, [role=status]')]
  .filter((node) => node.checkVisibility())
  .filter((node) => !(node.getAttribute('aria-label') || node.getAttribute('aria-labelledby')
    || node.textContent.trim() || (node.labels && node.labels.length)))
  .map((node) => node.outerHTML.slice(0, 100))
"""
"""What can be seen or used and has no name for whoever cannot see it."""

CONTRASTS = """
() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (colour) => rgb(colour).slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const ground = (node) => {
    while (node && rgb(getComputedStyle(node).backgroundColor)[3] === 0) node = node.parentElement;
    return getComputedStyle(node ?? document.body).backgroundColor;
  };
  return [...document.querySelectorAll('h1, h2, h3, h4, p, dt, dd, li, summary, pre, label, span')]
    .filter((node) => node.checkVisibility() && node.textContent.trim())
    .map((node) => {
      const text = light(getComputedStyle(node).color), behind = light(ground(node));
      return [(Math.max(text, behind) + 0.05) / (Math.min(text, behind) + 0.05), node.outerHTML.slice(0, 80)];
    });
}
"""
"""The contrast of every text with what is behind it, by the formula of the web's accessibility guidelines."""

READ = "fetch('TARGET', { headers: { Authorization: 'Bearer TOKEN' } }).then((r) => r.text(), () => 'refused')"
"""What a page of another site would do with a token that it should not have."""

ATTACKS = (
    """fetch('TARGET/conversations/attack/cwd', { method: 'PUT', body: '{"cwd": "/"}', headers:
      { Authorization: 'Bearer TOKEN', 'Content-Type': 'application/json' } }).catch(() => null)""",
    """fetch('TARGET/conversations/attack/lsp', { method: 'POST', mode: 'no-cors',
      body: '{"operation": "hover", "symbol": "a", "cwd": "/"}' }).catch(() => null)""",
)
"""The same, to change something."""
