internal import AttestClient
internal import Foundation

/// Files of a folder that are written together. If the process exits in between, either none of them is there, or
/// `settle` completes them.
///
/// They are written to a folder inside, which is renamed when all are there, and then moved out of it. Use it with
/// the folder locked.
struct AtomicFileSet {
  struct File {
    let name: String
    let bytes: [UInt8]
    let mode: UInt32
  }

  let folder: String

  /// Writes `files`. A reader without the lock may meanwhile see some of them earlier than others, the last one last.
  func write(_ files: [File]) throws(PrivateFile.AccessError) {
    try settle()
    try PrivateFile.makeFolder(begun)
    for file in files { try PrivateFile.write(file.bytes, to: "\(begun)/\(file.name)", mode: file.mode) }
    try PrivateFile.move(begun, to: written)
    try move(files.map(\.name))
  }

  /// Completes an interrupted change: an incomplete set of files is removed, and a complete one is moved to its
  /// place.
  func settle() throws(PrivateFile.AccessError) {
    for name in Self.names(in: begun) { try PrivateFile.remove("\(begun)/\(name)") }
    try PrivateFile.removeFolder(begun)
    try move(Self.names(in: written))
  }

  /// Whether files that belong together are being moved to their places, or were when a process ended.
  var isHalfDone: Bool { FileManager.default.fileExists(atPath: written) }

  private var begun: String { "\(folder)/.begun" }
  private var written: String { "\(folder)/.written" }

  private func move(_ names: [String]) throws(PrivateFile.AccessError) {
    for name in names { try PrivateFile.move("\(written)/\(name)", to: "\(folder)/\(name)") }
    try PrivateFile.removeFolder(written)
  }

  private static func names(in folder: String) -> [String] {
    (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
  }
}
