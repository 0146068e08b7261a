internal import AuthenticatorVault
internal import Foundation
internal import OneTimePasswords
internal import SwiftProtobuf

/// The links of Google Authenticator's export: `otpauth-migration://offline?data=…`, several for many entries.
enum MigrationLinks {
  /// The entries of a link that is written.
  static let batchSize = 10
  private static let scheme = "otpauth-migration://"
  /// The longest link, in bytes.
  private static let longestLink = 65_536

  static func read(_ bytes: [UInt8], at time: Int64, most: Int) throws(VaultFormatError) -> ImportedFile {
    var file = ImportedFile(.google)
    var parts: [OTPMigration] = []
    var singles: [VaultEntry] = []
    var count = 0
    // A link has at least one entry, and where names are long no more than that.
    let lines = try LinkList.lines(of: bytes, most: most)
    guard lines.count <= most else { throw .tooLarge }
    for (number, line) in lines {
      // Some lists have links of both kinds.
      if EntryLink.isLink(line), !line.beginsInEitherCase(with: scheme) {
        count += 1
        do throws(EntryFault) { singles.append(try LinkList.entry(line, at: time)) } catch {
          file.append(error, at: "line \(number)")
        }
        continue
      }
      guard let content = content(of: line) else {
        file.faults.append(ImportFault(place: "line \(number)", reason: "not a migration link, or cut off"))
        continue
      }
      count += content.entries.count
      guard count <= most else { throw .tooLarge }
      parts.append(content)
    }
    guard !parts.isEmpty || !singles.isEmpty else { throw .malformed(.google) }
    // An export has a number of its own; its parts come in any order, and some twice. Writers that number nothing give
    // the same number and index to different parts, so that only the same content is a repetition.
    for batch in Dictionary(grouping: parts, by: \.batchID).sorted(by: { $0.key < $1.key }) {
      // As bytes: texts are normalized before they are compared, and these are of any length.
      var seen: Set<[UInt8]> = []
      for part in batch.value.sorted(by: { $0.batchIndex < $1.batchIndex }) {
        let content: [UInt8]? = try? part.serializedBytes()
        if let content, !seen.insert(content).inserted { continue }
        add(part.entries, at: time, to: &file)
      }
      let indices = Set(batch.value.map(\.batchIndex))
      let count = min(max(batch.value.map(\.batchSize).max() ?? 0, 0), Int32(clamping: most))
      // As many parts as the export has, without numbers.
      if indices == [0], seen.count >= count { continue }
      // Each export may name as many parts as a file has entries; all of them together no more than that.
      guard file.missingParts.count + Int(count) <= most else { throw .tooLarge }
      file.missingParts += (0..<count).filter { !indices.contains($0) }.map { Int($0) + 1 }
    }
    file.entries += singles
    return file
  }

  private static func add(_ entries: [OTPMigration.Entry], at time: Int64, to file: inout ImportedFile) {
    file.add(entries, named: { shownName($0.issuer, $0.name) }) { entry throws(EntryFault) in
      var fields = EntryFields()
      fields.secret = Array(entry.secret)
      for (part, text) in [("issuer", entry.issuer), ("name", entry.name)] {
        if let fault = CombiningMarks.fault(in: text, part) { throw EntryFault(fault) }
      }
      fields.issuer = entry.issuer
      fields.account = entry.name
      // The name often begins with the issuer, as in a label.
      if let colon = entry.name.firstIndex(of: ":"), entry.issuer.isEmpty || entry.name[..<colon] == entry.issuer {
        fields.issuer = String(entry.name[..<colon])
        fields.account = String(entry.name[entry.name.index(after: colon)...])
      }
      switch entry.kind {
      case .unspecified, .totp: fields.type = "totp"
      case .hotp: fields.type = "hotp"
      case .UNRECOGNIZED(let number): throw EntryFault("the kind \(number)")
      }
      switch entry.algorithm {
      case .unspecified, .sha1: fields.algorithm = "SHA1"
      case .sha256: fields.algorithm = "SHA256"
      case .sha512: fields.algorithm = "SHA512"
      case .md5: throw EntryFault("the algorithm MD5")
      case .UNRECOGNIZED(let number): throw EntryFault("the algorithm \(number)")
      }
      switch entry.digits {
      case .unspecified, .six: fields.digits = 6
      case .eight: fields.digits = 8
      case .UNRECOGNIZED(let number): throw EntryFault("the number of digits \(number)")
      }
      fields.counter = entry.counter
      return try fields.entry(at: time)
    }
  }

  private static func content(of line: String) -> OTPMigration? {
    guard line.utf8.count <= longestLink, line.beginsInEitherCase(with: scheme),
      let query = line.split(separator: "?", maxSplits: 1).dropFirst().first
    else { return nil }
    for pair in query.split(separator: "&") where pair.utf8.starts(with: "data=".utf8) {
      guard let text = String(pair.dropFirst(5)).removingPercentEncoding, text.utf8.allSatisfy({ $0 < 0x80 }) else {
        return nil
      }
      // Some writers leave the padding out, and a `+` may have become a space.
      var base64 = text.replacing(" ", with: "+").replacing("-", with: "+").replacing("_", with: "/")
      base64 = base64.filter { $0 != "=" }
      base64 += String(repeating: "=", count: (4 - base64.count % 4) % 4)
      return Data(base64Encoded: base64).flatMap { try? OTPMigration(serializedBytes: $0) }
    }
    return nil
  }

  static func write(_ entries: [VaultEntry]) throws(VaultFormatError) -> VaultWriter.Written {
    var faults: [ImportFault] = []
    var written: [OTPMigration.Entry] = []
    for entry in entries {
      do throws(EntryFault) {
        let item = try encoded(entry)
        guard let link = try? link([item]), link.utf8.count <= longestLink else { throw EntryFault("so long a secret") }
        written.append(item)
      } catch {
        faults.append(ImportFault(place: entry.name, reason: "Google's links have no place for \(error.reason)"))
      }
    }
    var batches: [[OTPMigration.Entry]] = []
    for start in stride(from: 0, to: written.count, by: batchSize) {
      batches += try fitting(Array(written[start..<min(start + batchSize, written.count)]))
    }
    let batchID = Int32.random(in: 1...Int32.max)
    var lines = ""
    for (index, batch) in batches.enumerated() {
      lines += try link(batch, index: Int32(index), of: Int32(batches.count), batchID: batchID) + "\n"
    }
    return .init(bytes: Array(lines.utf8), faults: faults)
  }

  /// A batch in as many parts as make links that are not too long.
  private static func fitting(_ batch: [OTPMigration.Entry]) throws(VaultFormatError) -> [[OTPMigration.Entry]] {
    guard batch.count > 1, try link(batch).utf8.count > longestLink else { return [batch] }
    let middle = batch.count / 2
    return try fitting(Array(batch[..<middle])) + fitting(Array(batch[middle...]))
  }

  /// A link, by default with the longest numbers that it may have.
  private static func link(
    _ batch: [OTPMigration.Entry], index: Int32 = .max, of count: Int32 = .max, batchID: Int32 = .max
  ) throws(VaultFormatError) -> String {
    var content = OTPMigration()
    content.entries = batch
    content.version = 1
    content.batchSize = count
    content.batchIndex = index
    content.batchID = batchID
    guard let data: Data = try? content.serializedBytes() else { throw .malformed(.google) }
    let text = data.base64EncodedString().replacing("+", with: "%2B").replacing("/", with: "%2F")
      .replacing("=", with: "%3D")
    return "otpauth-migration://offline?data=\(text)"
  }

  private static func encoded(_ entry: VaultEntry) throws(EntryFault) -> OTPMigration.Entry {
    var encoded = OTPMigration.Entry()
    switch entry.kind {
    case .totp(30): encoded.kind = .totp
    case .totp(let period): throw EntryFault("a period of \(period) s")
    case .hotp:
      encoded.kind = .hotp
      guard let counter = Int64(exactly: entry.counter) else { throw EntryFault("the counter") }
      encoded.counter = counter
    case .steam, .other: throw EntryFault("codes of this kind")
    }
    switch entry.digits {
    case 6: encoded.digits = .six
    case 8: encoded.digits = .eight
    default: throw EntryFault("\(entry.digits) digits")
    }
    switch entry.algorithm {
    case .sha1: encoded.algorithm = .sha1
    case .sha256: encoded.algorithm = .sha256
    case .sha512: encoded.algorithm = .sha512
    }
    encoded.secret = Data(entry.secret)
    encoded.issuer = entry.issuer
    encoded.name = entry.account
    return encoded
  }
}
