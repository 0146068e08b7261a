internal import ByteCoding

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The keys of systems other than those of devices' makers, as a file that an operator chooses.
public struct AndroidBootKeys: Sendable, Hashable {
  /// The maximum size of a file in bytes.
  public static let maximumSize = 1 << 20

  /// SHA-256 of each key, 32 bytes, as `verifiedBootKey` has it.
  public let keys: Set<[UInt8]>

  /// Parses a file: the JSON that GrapheneOS publishes, `{"verifiedBootKeys": [HEX, …]}`, or lines of hex, in which
  /// empty lines and those that begin with `#` are skipped.
  public init(_ content: [UInt8]) throws(AndroidBootKeysError) {
    guard content.count <= Self.maximumSize else { throw .tooLarge(content.count) }
    let isJSON = content.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } == UInt8(ascii: "{")
    let texts = isJSON ? try Self.published(content) : Self.lines(content)
    var keys: Set<[UInt8]> = []
    for text in texts {
      guard let key = Hex.decode(text), key.count == 32 else { throw .malformedKey(text) }
      keys.insert(key)
    }
    guard !keys.isEmpty else { throw .empty }
    self.keys = keys
  }

  private struct Document: Decodable {
    let verifiedBootKeys: [String]
  }

  private static func published(_ content: [UInt8]) throws(AndroidBootKeysError) -> [String] {
    guard JSONGrammar.accepts(content) else { throw .notJSON }
    do {
      return try JSONDecoder().decode(Document.self, from: Data(content)).verifiedBootKeys
    } catch {
      throw .notJSON
    }
  }

  private static func lines(_ content: [UInt8]) -> [String] {
    String(decoding: content, as: UTF8.self).split(whereSeparator: \.isNewline)
      .map { String($0.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }) }
      .filter { !$0.isEmpty && !$0.hasPrefix("#") }
  }
}

/// Why a file is not one of boot keys.
public enum AndroidBootKeysError: Error, Sendable, Hashable {
  /// The file has more bytes than `AndroidBootKeys.maximumSize`.
  case tooLarge(Int)
  /// The file begins like JSON and is not `{"verifiedBootKeys": […]}`.
  case notJSON
  /// There is no key in it.
  case empty
  /// Not 32 bytes in hex.
  case malformedKey(String)
}

extension AndroidBootKeysError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .tooLarge(let size): "the file has \(size) bytes, where \(AndroidBootKeys.maximumSize) are allowed"
    case .notJSON: "the file is not JSON with a list verifiedBootKeys"
    case .empty: "the file has no boot key"
    case .malformedKey(let text): "\(text) is not the SHA-256 of a boot key: 32 bytes in hex"
    }
  }
}
