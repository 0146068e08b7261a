internal import Transport

/// The violations of the message head rules (RFC 9112), with their texts.
///
/// The texts go to peers and to the log, so none of them quotes input.
enum HeadError: String, Error, Sendable, CaseIterable {
  // Size
  case headLength = "the head is too long"
  case fieldCount = "the head has too many fields"

  // Request line
  case firstByte = "the first byte does not begin a request"
  case method = "the method is not a token of at most 32 characters"
  case targetForm = "the request target is neither in origin form nor an https URI"
  case targetAuthority = "the authority of the request target is not a host and an optional port"
  case targetCharacter = "the request target holds a character that must be escaped"
  case targetEscape = "a percent sign in the request target is not followed by two hexadecimal digits"
  case version = "the version is not HTTP/1.1"

  // Path
  case emptySegment = "the path has an empty segment"
  case dotSegment = "the path has a dot segment"
  case escapedSeparator = "the path holds an escaped slash or backslash"
  case escapedControl = "the path holds an escaped control character"
  case escapedEncoding = "the path is not UTF-8 once its escapes are decoded"
  case doubleEscape = "the path holds an escape of an escape"

  // Status line
  case statusLine = "the answer does not begin with an HTTP/1 status line"
  case status = "the status is not a number from 100 to 599"

  // Lines
  case lineEnd = "a line does not end in CRLF"
  case foldedLine = "a field line begins with white space"
  case fieldNameMissing = "a field has no name"
  case fieldName = "a field name is not a token"
  case spaceBeforeColon = "white space stands before a field's colon"
  case colonMissing = "a field line has no colon"
  case fieldValue = "a field value or reason phrase holds a control character"
  /// Readers in C take it for the end of the value.
  case fieldNUL = "a field value or reason phrase holds a NUL"
  case fieldEncoding = "a field that the gate reads is not UTF-8: send ASCII in it"

  // Fields
  case hostMissing = "the Host field is missing"
  case hostRepeated = "the Host field is repeated"
  case hostSyntax = "the Host field is not a host and an optional port"
  case hostDiffers = "the Host field names another host than the request target: send the same in both"
  case connectionSyntax = "the Connection field is not a list of at most 64 tokens"
  case expectation = "an expectation other than 100-continue cannot be met"

  // Body framing
  case contentLengthRepeated = "the Content-Length field is repeated"
  case contentLengthSyntax = "the Content-Length field is not a number of bytes"
  case transferEncoding = "a transfer coding other than chunked is not supported"
  case doubleFraming = "both Content-Length and Transfer-Encoding frame the body"
}

extension HeadError {
  /// The fault as the responder receives it.
  var requestError: RequestError {
    switch self {
    case .headLength, .fieldCount:
      .headTooLarge(rule: rawValue)
    case .contentLengthRepeated, .contentLengthSyntax, .transferEncoding, .doubleFraming:
      .malformedBody(rule: rawValue)
    case .firstByte, .method, .targetForm, .targetAuthority, .targetCharacter, .targetEscape, .version, .emptySegment,
      .dotSegment,
      .escapedSeparator, .escapedControl, .escapedEncoding, .doubleEscape, .statusLine, .status, .lineEnd, .foldedLine,
      .fieldNameMissing, .fieldName,
      .spaceBeforeColon, .colonMissing, .fieldNUL, .hostMissing, .hostRepeated, .hostSyntax, .hostDiffers:
      .malformedHead(rule: rawValue)
    case .fieldValue, .fieldEncoding, .connectionSyntax, .expectation:
      .unacceptableField(rule: rawValue)
    }
  }
}
