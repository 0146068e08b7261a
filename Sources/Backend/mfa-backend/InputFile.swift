internal import Commands
internal import ConfigurationEngine
internal import Foundation
internal import Glibc

/// A file that an option names.
enum InputFile {
  /// Reads a secret file of at most `limit` bytes, which is 1 MiB unless given. Prints a warning if the group of the
  /// file can read it.
  ///
  /// - Throws: `Failure` if the file cannot be read, or if every user of the machine can read or change it.
  ///
  /// - Parameters:
  ///   - use: what the file is, for error messages: `the keys file`.
  ///   - warns: whether a warning is printed; `false` for a file that is read often.
  static func readSecret(
    _ path: String, _ use: String, warns: Bool = true, limit: Int = FileContent.limit
  ) throws(Failure) -> Data {
    var status = stat()
    if stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
      guard status.st_mode & 0o004 == 0 else {
        throw Failure(
          .configuration, "every user of this machine can read \(use) \(path)",
          hint: "chmod 600 \(path), and replace the secret if other users could have read it")
      }
      guard status.st_mode & 0o002 == 0 else {
        throw Failure(
          .configuration, "every user of this machine can change \(use) \(path)",
          hint: "chmod 600 \(path), and check its content")
      }
      if warns, status.st_mode & 0o040 != 0 { Console.tell(.warning("\(use) \(path) is readable by its group")) }
    }
    do throws(FileContentError) {
      return Data(try FileContent.read(path, acceptsPipe: true, limit: limit))
    } catch {
      throw Failure(.noInput, "\(use) \(path) cannot be read: \(error.reason)")
    }
  }

  /// Brings a file and its name to the disk, for content that the database is about to depend on: a power failure soon
  /// after the command that wrote the file could take it away.
  ///
  /// What cannot be flushed is passed over: a pipe, a file in memory, a folder that this user may not read.
  ///
  /// - Throws: `Failure` if the disk does not take it.
  static func flush(_ path: String, _ use: String) throws(Failure) {
    // The name of a link, and that of the file to which it leads.
    let folders = [
      path,
      path.withCString { realpath($0, nil) }.map { place in
        defer { free(place) }
        return String(cString: place)
      },
    ].compactMap(\.self).map { ($0 as NSString).deletingLastPathComponent }
    for place in [path] + folders.map({ $0.isEmpty ? "." : $0 }) {
      let descriptor = open(place, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
      guard descriptor >= 0 else { continue }
      defer { close(descriptor) }
      guard fsync(descriptor) == 0 || errno == EINVAL || errno == EROFS else {
        throw Failure(
          .cannotWrite, "\(use) \(path) cannot be brought to the disk: \(String(cString: strerror(errno)))",
          hint: "check the disk and its free space, or move the file to another disk")
      }
    }
  }

  /// The first line of a secret file that is not empty.
  static func secretLine(_ path: String, _ use: String, warns: Bool = true) throws(Failure) -> String {
    let text = String(decoding: try readSecret(path, use, warns: warns), as: UTF8.self)
    guard let line = text.split(whereSeparator: \.isNewline).first else {
      throw Failure(.configuration, "\(path) is empty")
    }
    return String(line)
  }

  /// Whether both paths lead to the same file, which exists.
  static func areSame(_ path: String, _ other: String) -> Bool {
    var first = stat()
    var second = stat()
    return stat(path, &first) == 0 && stat(other, &second) == 0 && first.st_dev == second.st_dev
      && first.st_ino == second.st_ino
  }

  /// Checks at startup that `path` can be read, rather than at the first use.
  static func require(_ path: String, _ use: String) throws(Failure) {
    guard access(path, R_OK) == 0 else {
      throw Failure(.noInput, "\(use) \(path) cannot be read: \(String(cString: strerror(errno)))")
    }
  }
}
