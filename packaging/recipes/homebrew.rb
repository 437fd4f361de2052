class Pilotfish < Formula
  desc "@description@"
  homepage "@repository@"
  url "@pyz.url@"
  version "@version@"
  sha256 "@pyz.sha256@"
  license "@license@"

  depends_on "python@3.13"

  def install
    libexec.install "pilotfish.pyz"
    (bin/"pilotfish").write <<~SH
      #!/bin/sh
      exec "#{Formula["python@3.13"].opt_bin}/python3.13" "#{libexec}/pilotfish.pyz" "$@"
    SH
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/pilotfish --version")
  end
end
