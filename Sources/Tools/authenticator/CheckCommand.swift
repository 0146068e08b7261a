internal import ArgumentParser
internal import AuthenticatorVault
internal import ByteCoding
internal import Commands
internal import Foundation

struct CheckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Open the vault and its last versions, and report what is wrong with them.",
    discussion: """
      Exit code 1 if there are problems. Example:
        authenticator check
      """)

  @OptionGroup var options: VaultOptions

  private struct Report: Encodable {
    struct Version: Encodable {
      let path: String
      let entries: Int?
      let problem: String?
    }

    let path: String
    var entries: Int?
    var removed: Int?
    var bytes: Int?
    var problems: [String] = []
    var warnings: [String] = []
    var versions: [Version] = []
  }

  func run() throws {
    let folder = try options.folder()
    var report = Report(path: folder.vaultPath)
    var keys: [VaultKey] = []
    do throws(Failure) {
      let opened = try options.open()
      keys.append(opened.key)
      inspect(opened, &report)
    } catch {
      // A wrong passphrase or a missing terminal says nothing of the vault.
      let isGone = try error.status == .noInput && !folder.versions().isEmpty
      guard error.status == .badData || isGone else { throw error }
      report.problems.append(error.message)
    }
    let file = try? folder.read()
    report.bytes = file?.bytes.count
    if let file, let key = keys.first, let values = try? file.impossibleValues(key: key) {
      report.problems += values.map { "\($0); it is read as another one, which the next change of the vault writes" }
    }
    if VaultFolder.isLink(folder.vaultPath) {
      report.problems.append("\(folder.vaultPath) is a symbolic link, and is not written through")
    }
    permissions(of: folder, &report)
    for path in try folder.versions() {
      let found = try version(path, &keys, &report.problems)
      report.versions.append(found)
    }
    tell(report)
    if !report.problems.isEmpty {
      throw Failure(.problems, "the vault has problems", hint: hint(report, folder))
    }
  }

  private func inspect(_ opened: OpenVault, _ report: inout Report) {
    let entries = opened.vault.entries
    report.entries = entries.count
    report.removed = opened.vault.removed.count
    report.warnings += entries.compactMap(\.weakness)
    for entry in entries {
      if case .other(let kind) = entry.kind {
        report.warnings.append("\(entry.name): codes of the kind \(kind) are not known; the entry is kept")
      }
    }
  }

  private func permissions(of folder: VaultFolder, _ report: inout Report) {
    for path in [folder.path, folder.vaultPath] {
      if let mode = VaultFolder.mode(of: path), mode & 0o077 != 0 {
        report.problems.append("others can open \(path): its mode is \(String(mode, radix: 8))")
      }
    }
  }

  /// Opens a version with a key that is known already, otherwise with the passphrase. One that is damaged is among
  /// `problems`; one whose passphrase is that of another time is not.
  private func version(
    _ path: String, _ keys: inout [VaultKey], _ problems: inout [String]
  ) throws(Failure) -> Report.Version {
    // A link leads to a file that has changed since then, or nowhere.
    guard !VaultFolder.isLink(path) else { return .init(path: path, entries: nil, problem: "only a symbolic link") }
    do throws(Failure) {
      guard let file = try VaultFolder.read(path) else { return .init(path: path, entries: nil, problem: "gone") }
      let opened: OpenVault
      if let key = keys.first(where: { $0.id == file.keyID }) {
        opened = try file.opened(with: key, at: path)
      } else {
        opened = try options.open(file, at: path)
        keys.append(opened.key)
      }
      return .init(path: path, entries: opened.vault.entries.count, problem: nil)
    } catch {
      if error.status == .badData { problems.append(error.message) }
      return .init(path: path, entries: nil, problem: error.message)
    }
  }

  private func hint(_ report: Report, _ folder: VaultFolder) -> String? {
    guard report.entries == nil else {
      if report.problems.contains(where: { $0.hasPrefix("others can open") }) { return "chmod go= the files" }
      let reasons = report.versions.compactMap(\.problem)
      return reasons.contains { report.problems.contains($0) }
        ? "the vault itself can be opened; remove the versions that cannot" : nil
    }
    return report.versions.first { $0.entries != nil }
      .map { "copy \($0.path) to \(folder.vaultPath): it can be opened" }
  }

  private func tell(_ report: Report) {
    if options.json {
      JSONOutput.print(report)
      return
    }
    var lines = ["vault     \(report.path)"]
    if let entries = report.entries, let removed = report.removed, let bytes = report.bytes {
      lines.append("entries   \(entries), and \(removed) that can be restored, in \(bytes) bytes")
    }
    lines += report.problems.map { "problem   \($0)" }
    lines += report.warnings.map { "warning   \($0)" }
    lines += report.versions.map { version in
      "version   \(version.path): \(version.entries.map { "\($0) entries" } ?? version.problem ?? "")"
    }
    for line in lines { StandardOutput.write(TerminalText.printable(line) + "\n") }
  }
}
