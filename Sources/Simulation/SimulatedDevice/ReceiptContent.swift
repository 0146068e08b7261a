public import ByteCoding
internal import Cryptography

/// The content of a receipt: numbered fields, which Apple documents in part.
public struct ReceiptContent: Sendable, Hashable {
  /// One numbered field of a receipt.
  public struct Field: Sendable, Hashable {
    /// The number of the field.
    public var type: UInt64
    /// The value.
    public var value: [UInt8]

    /// Creates a field.
    public init(_ type: UInt64, _ value: [UInt8]) {
      self.type = type
      self.value = value
    }
  }

  /// In the order of the encoding.
  public var fields: [Field]

  /// The value of the first field of `type`; setting `nil` removes the fields of that type.
  public subscript(type: UInt64) -> [UInt8]? {
    get { fields.first { $0.type == type }?.value }
    set {
      let index = fields.firstIndex { $0.type == type } ?? fields.endIndex
      fields.removeAll { $0.type == type }
      if let newValue { fields.insert(Field(type, newValue), at: index) }
    }
  }

  /// The text of the first field of `type`.
  public subscript(text type: UInt64) -> String? {
    get { self[type].map { String(decoding: $0, as: UTF8.self) } }
    set { self[type] = newValue.map { Array($0.utf8) } }
  }

  /// Creates the receipt that comes with an attestation. It is valid for 90 days.
  ///
  /// - Parameter device: Names the device to the simulated data service, as Apple's token does in its own way; `nil` for a
  ///   device of its own.
  static func attest(
    app: SimulatedApp, leaf: Certificate, clientDataHash: [UInt8], device: SimulatedDeviceName? = nil,
    at instant: Timestamp
  ) -> ReceiptContent {
    var content = ReceiptContent(fields: [Field(2, Array(app.appID.utf8)), Field(3, leaf.der)])
    content[4] = clientDataHash
    content[text: 5] = (device ?? SimulatedDeviceName()).token
    content[text: 6] = "ATTEST"
    content[text: 7] = app.environment.receiptName
    content.setTimes(created: instant)
    return content
  }

  /// The receipt that Apple's servers would give for one of the first kind, with a risk metric.
  static func risk(
    app: SimulatedApp, leaf: Certificate, metric: UInt32, at instant: Timestamp
  ) -> ReceiptContent {
    var content = attest(app: app, leaf: leaf, clientDataHash: SecureRandom.bytes(32), at: instant)
    content[text: 6] = "RECEIPT"
    content.fields.removeAll { $0.type == 21 }
    content[text: 17] = String(metric)
    content[text: 19] = milliseconds(instant.advanced(by: .seconds(86400)))
    content.setTimes(created: instant)
    return content
  }

  /// Fields 12 (created) and 21 (expires), 90 days apart.
  public mutating func setTimes(created: Timestamp) {
    self[text: 12] = Self.milliseconds(created)
    self[text: 21] = Self.milliseconds(created.advanced(by: .seconds(90 * 86400)))
  }

  /// RFC 3339 with three fraction digits, as Apple writes times.
  public static func milliseconds(_ instant: Timestamp) -> String {
    let text = Timestamp(milliseconds: instant.milliseconds).description
    return text.contains(".") ? text : text.dropLast() + ".000Z"
  }

  /// A SET of triples: type, version (1), value.
  public var encoded: [UInt8] {
    DER.set(of: fields.map { DER.sequence(DER.integer($0.type), DER.integer(1), DER.octetString($0.value)) })
  }
}

extension ReceiptContent {
  /// Parses the content of a receipt; `nil` if it is none.
  init?(decoding content: [UInt8]) {
    self.init(fields: [])
    do throws(ASN1Error) {
      var file = ASN1Reader(content)
      var set = try file.enter(.set)
      try file.end()
      while !set.isAtEnd {
        var entry = try set.enter(.sequence)
        let type = try entry.unsignedInteger()
        _ = try entry.unsignedInteger()
        fields.append(Field(UInt64(type), Array(try entry.octetString())))
        try entry.end()
      }
    } catch {
      return nil
    }
  }
}
