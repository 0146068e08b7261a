internal import Foundation

/// The export of ente Auth with a password: links of which each line has one, encrypted by XChaCha20-Poly1305 under a key
/// from Argon2id.
enum EnteFile {
  private struct Export: Decodable {
    let version: Int
    let kdfParams: Parameters
    let encryptedData: String
    let encryptionNonce: String
  }

  private struct Parameters: Decodable {
    /// Bytes.
    let memLimit: Int
    /// Passes.
    let opsLimit: Int
    let salt: String
  }

  /// The memory that is read, in bytes: libsodium's least, and the 1 GiB that ente asks for.
  private static let memory = 8192...(1 << 30)
  /// The product of memory and passes. ente doubles the passes where it halves the memory.
  private static let mostWork = 4 << 30

  static func read(_ data: Data, at time: Int64, most: Int, password: () throws -> String) throws -> ImportedFile {
    let export = try JSONDecoder.file(Export.self, data, .ente, most: most)
    guard export.version == 1 else {
      throw VaultFormatError.unsupported(
        "the export of ente Auth has version \(export.version), which is not known", hint: "export it as plain text")
    }
    // What is malformed, and what asks for too much, costs no question.
    guard let salt = Data(base64Encoded: export.kdfParams.salt), salt.count == 16,
      let header = Data(base64Encoded: export.encryptionNonce), header.count == SecretStream.headerBytes,
      let message = Data(base64Encoded: export.encryptedData), message.count >= SecretStream.overhead
    else { throw VaultFormatError.malformed(.ente) }
    let (bytes, passes) = (export.kdfParams.memLimit, export.kdfParams.opsLimit)
    let cost = "Argon2id with \(passes) passes and \(bytes) bytes of memory"
    guard memory.contains(bytes) else {
      throw VaultFormatError.keyDerivation(bytes > memory.upperBound ? "\(cost), more than 1 GiB" : cost)
    }
    guard passes > 0, passes <= mostWork / bytes else {
      throw VaultFormatError.keyDerivation(passes > 0 ? "\(cost), which takes too long" : cost)
    }
    try FileCipher.checkMemory(bytes)
    let key = try FileCipher.argon2id(
      try password(), salt: salt, passes: UInt32(passes), kibibytes: UInt32(bytes / 1024), lanes: 1)
    guard let content = SecretStream.open(message, header: header, with: key) else {
      throw VaultFormatError.wrongPassword
    }
    return try LinkList.read(unquoted(content, most: most), as: .ente, at: time, most: most)
  }

  /// Earlier versions wrote a link as a JSON text, in quotation marks.
  private static func unquoted(_ content: Data, most: Int) -> [UInt8] {
    // What is not split has more lines than are read.
    let most = most * LinkList.linesForEntry
    let parts = content.split(separator: UInt8(ascii: "\n"), maxSplits: most, omittingEmptySubsequences: false)
    let lines = parts.map { line -> Data in
      guard line.count > 2, line.first == UInt8(ascii: "\""), line.last == UInt8(ascii: "\""),
        let text = try? JSONDecoder().decode(String.self, from: Data(line)), !text.contains(where: \.isNewline)
      else { return Data(line) }
      return Data(text.utf8)
    }
    return Array(lines.joined(separator: [UInt8(ascii: "\n")]))
  }
}
