internal import Transport

/// Why a body could not be read.
enum BodyFault: Error, Sendable, Hashable {
  /// It is longer than `limit` bytes, or says that it will be.
  case tooLarge(limit: Int)
  case malformed(ChunkFault)
  /// The connection ended inside it.
  case endedEarly
}

/// The rules of the chunked coding (RFC 9112 section 7.1), each by the sentence that says how it was broken.
enum ChunkFault: String, Error, Sendable, CaseIterable {
  case size = "a chunk does not begin with its size in hexadecimal digits"
  case sizeDigits = "a chunk size has more than 16 digits"
  case `extension` = "a chunk has an extension"
  case extensionForm = "a chunk extension is malformed or longer than 4 KiB"
  case lineEnd = "a chunk size does not end in CRLF"
  case dataEnd = "a chunk's data are not followed by CRLF"
  case trailer = "the last chunk is followed by trailer fields"
}

extension BodyFault {
  /// This fault of a request, as the responder is told of it.
  var requestFault: RequestFault {
    switch self {
    case .tooLarge(let limit): .bodyTooLarge(limit: limit)
    case .malformed(let fault): .malformedBody(rule: fault.rawValue)
    case .endedEarly: .malformedBody(rule: "the connection ended inside the body")
    }
  }
}
