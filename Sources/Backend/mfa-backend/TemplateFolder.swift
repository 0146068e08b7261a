internal import Commands
internal import Foundation
internal import Glibc
internal import MFADelivery

/// The folder with the templates of messages.
enum TemplateFolder {
  /// Reads the files of the folder, by name. Names that begin with a dot are left out: tools keep their own files there.
  ///
  /// - Throws: `Failure` if the folder or a file cannot be read, or if there is no file.
  static func read(_ folder: String) throws(Failure) -> [(name: String, content: [UInt8])] {
    guard let all = try? FileManager.default.contentsOfDirectory(atPath: folder) else {
      throw Failure(
        .noInput, "the folder \(folder) cannot be read",
        hint: "create the folder with files such as code.sms.txt, and let this user read it")
    }
    let names = all.filter { !$0.hasPrefix(".") }.sorted()
    guard !names.isEmpty else {
      throw Failure(.configuration, "the folder \(folder) has no template", hint: "add a file such as code.sms.txt")
    }
    var files: [(name: String, content: [UInt8])] = []
    // One more than allowed, for the fault.
    for name in names.prefix(MessageTemplates.mostFiles + 1) {
      files.append((name, try content(of: folder + "/" + name)))
    }
    return files
  }

  /// At most one byte more than a template may have.
  private static func content(of path: String) throws(Failure) -> [UInt8] {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw Failure(.configuration, "\(path) is not a file", hint: "keep only templates in the folder")
    }
    guard let file = FileHandle(forReadingAtPath: path),
      let content = try? file.read(upToCount: MessageTemplates.largestFile + 1)
    else {
      try InputFile.require(path, "the template")
      // A file without a byte: its fault is that it is empty.
      return []
    }
    return Array(content)
  }
}
