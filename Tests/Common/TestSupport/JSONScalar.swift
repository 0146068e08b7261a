/// A number or a text in the JSON of another program.
public enum JSONScalar: Decodable, Equatable, Sendable {
  case text(String), number(Int)

  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let number = try? container.decode(Int.self) {
      self = .number(number)
    } else {
      self = .text(try container.decode(String.self))
    }
  }
}
