/// What is known of an element of DER before it is read.
struct DERShape: Sendable {
  /// How the content of the element is read.
  indirect enum Content: Sendable {
    /// By its type alone.
    case any
    /// Fields in their order; optional ones may be absent. Further elements are read by their type.
    case fields([DERShape])
    /// Elements of one shape.
    case each(DERShape)
    /// A string whose bytes are an element.
    case string(DERShape)
    /// A string of text; of anything else the bytes are shown.
    case text
    /// A number or an enumerated value that stands for a word.
    case words([Int: String])
    /// A number that other documents write in hexadecimal digits without leading zeros.
    case hexNumber
    /// A `Name`: its text is the value.
    case name
    /// An identifier and what belongs to it: the fields of an algorithm or an attribute.
    case identified
    /// An extension of a certificate: its identifier says what its string contains.
    case certificateExtension
    /// A field of a receipt: its number says what its string contains.
    case receiptField
    /// A string in one piece or in segments, which is the fields of a receipt.
    case receiptFields
    /// The authorizations of an attested key: the number of each tag says what it is.
    case authorizations
  }

  let name: String
  let meaning: String?
  /// The identifier octets that the element may have; `nil` for any.
  let tags: [UInt8]?
  let isOptional: Bool
  let content: Content

  init(
    _ name: String, _ meaning: String? = nil, tags: [UInt8]? = nil, isOptional: Bool = false, _ content: Content = .any
  ) {
    (self.name, self.meaning, self.tags) = (name, meaning, tags)
    (self.isOptional, self.content) = (isOptional, content)
  }

  func matches(_ tag: UInt8) -> Bool { tags?.contains(tag) ?? true }
}
