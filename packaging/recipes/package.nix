# `nix-build -E 'with import <nixpkgs> { }; callPackage ./package.nix { }'`
{
  lib,
  fetchurl,
  git,
  python3Packages,
}:
python3Packages.buildPythonApplication {
  pname = "pilotfish";
  version = "@version@";
  pyproject = true;
  src = fetchurl {
    url = "@sdist.url@";
    hash = "@sdist.sri@";
  };
  build-system = [ python3Packages.hatchling ];
  dependencies = with python3Packages; [ @requires.nix@ ];
  makeWrapperArgs = [ "--prefix PATH : ${lib.makeBinPath [ git ]}" ];
  doCheck = false; # the gate needs real language servers
  pythonImportsCheck = [ "pilotfish" ];
  meta = {
    description = "@description@";
    homepage = "@repository@";
    license = lib.licenses.mit;
    mainProgram = "pilotfish";
  };
}
