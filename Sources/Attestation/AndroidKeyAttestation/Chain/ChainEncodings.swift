internal import ByteCoding
internal import Cryptography

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

extension AndroidCertificateChain {
  /// The DER of each certificate in the text of a chain, leaf first: PEM, or a JSON array of base64, in lines or not.
  ///
  /// - Throws: that the text is neither, or which elements of the array are not base64.
  public static func encodings(in text: [UInt8]) throws(AndroidAttestationRejection) -> [[UInt8]] {
    // Base64 takes four thirds, and lines and quotation marks some more.
    guard text.count <= 4 * maximumSize else { throw AndroidAttestationRejection(.chainSize(text.count)) }
    // A byte order mark, which some editors write.
    let text = text.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(text.dropFirst(3)) : text
    let isJSON = text.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } == UInt8(ascii: "[")
    return isJSON ? try array(in: text) : try pem(in: text)
  }

  private static func array(in text: [UInt8]) throws(AndroidAttestationRejection) -> [[UInt8]] {
    guard JSONGrammar.accepts(text), let items = try? JSONDecoder().decode([String].self, from: Data(text)) else {
      throw AndroidAttestationRejection(.malformedChain(reason: "it is not a JSON array of strings"))
    }
    let decoded = items.map { Base64.decode(anyForm: $0.filter { !$0.isWhitespace }) }
    let broken = decoded.indices.filter { decoded[$0] == nil }
    guard broken.isEmpty else {
      throw AndroidAttestationRejection(broken.map { .malformedCertificate($0, reason: "it is not base64") })
    }
    return decoded.compactMap(\.self)
  }

  private static func pem(in text: [UInt8]) throws(AndroidAttestationRejection) -> [[UInt8]] {
    do throws(CryptographyError) {
      return try Certificate.encodings(pem: String(decoding: text, as: UTF8.self))
    } catch {
      throw AndroidAttestationRejection(.malformedChain(reason: "it is no JSON array and no PEM (\(error))"))
    }
  }
}
