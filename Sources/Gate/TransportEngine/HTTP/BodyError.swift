internal import Transport

/// Why a body could not be read.
enum BodyError: Error, Sendable, Hashable {
  /// The body is longer than `limit` bytes, or announces more.
  case tooLarge(limit: Int)
  case malformed(ChunkError)
  /// The connection was closed inside the body.
  case endedEarly
}

/// The violations of the chunked coding (RFC 9112 section 7.1), with their texts.
enum ChunkError: String, Error, Sendable, CaseIterable {
  case size = "a chunk does not begin with its size in hexadecimal digits"
  case sizeDigits = "a chunk size has more than 16 digits"
  case `extension` = "a chunk has an extension"
  case extensionForm = "a chunk extension is malformed or longer than 4 KiB"
  case lineEnd = "a chunk size does not end in CRLF"
  case dataEnd = "a chunk's data are not followed by CRLF"
  case trailer = "the last chunk is followed by trailer fields"
}

extension BodyError {
  /// The fault as the responder receives it.
  var requestError: RequestError {
    switch self {
    case .tooLarge(let limit): .bodyTooLarge(limit: limit)
    case .malformed(let fault): .malformedBody(rule: fault.rawValue)
    case .endedEarly: .malformedBody(rule: "the connection was closed inside the body")
    }
  }
}
