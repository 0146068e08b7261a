import AuthenticatorVault
import Foundation
import Glibc
import TestSupport

/// Calls `body` with `authenticator` in a temporary folder.
func withShell(_ body: (Shell) async throws -> Void) async throws {
  try await Places.withTemporaryFolder { try await body(Shell($0)) }
}

/// `authenticator` in a folder of its own, with a passphrase in a file.
struct Shell {
  static let passphrase = "correct horse battery"
  static let secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"

  /// The folder of this test.
  let folder: String
  /// The name of the vault's folder in it.
  var vault = "vault"

  init(_ folder: String) throws {
    self.folder = folder
    try Data((Self.passphrase + "\n").utf8).write(to: URL(fileURLWithPath: folder + "/passphrase"))
  }

  var vaultPath: String { folder + "/" + vault }
  var environment: [String: String?] {
    [
      "AUTHENTICATOR_VAULT": vaultPath, "AUTHENTICATOR_PASSPHRASE_FILE": folder + "/passphrase", "DISPLAY": nil,
      "WAYLAND_DISPLAY": nil,
    ]
  }

  /// What a command printed.
  struct Result {
    let code: Int32?
    let output: [String]
    let errors: [String]
  }

  /// Runs `authenticator` with the words of `line` and further ones.
  @discardableResult
  func run(
    _ line: String, _ more: String..., input: String = "", environment changed: [String: String?] = [:]
  ) async throws -> Result {
    let words = line.split(separator: " ").map(String.init) + more
    let run = try await ChildProcess.run(
      try Places.product("authenticator"), words, input: Array(input.utf8),
      environment: environment.merging(changed) { $1 }, in: folder)
    return Result(code: run.exit.code, output: run.output, errors: run.errors)
  }

  /// The ids of the processes that wait to clear the clipboard of a test in this folder.
  func waitingClearings() async throws -> [pid_t] {
    let found = try await ChildProcess.run(try Places.tool("pgrep"), ["-f", "clear-clipboard --waits"])
    return found.output.compactMap { pid_t($0) }.filter { id in
      let bytes = try? Data(contentsOf: URL(fileURLWithPath: "/proc/\(id)/environ"))
      return bytes?.range(of: Data(folder.utf8)) != nil
    }
  }

  /// Makes a vault whose passphrase is cheap to try.
  @discardableResult
  func makeVault(_ entries: [VaultEntry]) throws -> VaultKey {
    var contents = Vault()
    for entry in entries { contents.add(entry, at: entry.createdAt) }
    let key = VaultKey()
    let slots = VaultFile.Slots([try PassphraseSlot(key, passphrase: Self.passphrase, cost: 1024)], changedAt: 1)
    try FileManager.default.createDirectory(
      atPath: vaultPath + "/versions", withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    try VaultFile(contents, key: key, slots: slots).bytes.write(to: URL(fileURLWithPath: vaultPath + "/vault"))
    chmod(vaultPath + "/vault", 0o600)
    chmod(vaultPath, 0o700)
    return key
  }
}
