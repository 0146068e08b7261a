internal import CLibCBOR

/// An event of libcbor's streaming decoder: the head of an item, or the bytes of a string.
enum CBOREvent {
  case unsigned(UInt64)
  case negative(UInt64)
  case bytes([UInt8])
  case text([UInt8])
  case array(count: UInt64)
  case map(count: UInt64)
  case tag(UInt64)
  case float(Double)
  case boolean(Bool)
  case null
  case undefined
  /// The start or the end of something of indefinite length.
  case indefinite

  enum Outcome {
    case event(CBOREvent, bytes: Int)
    case truncated
    case malformed
  }

  /// The first event in `bytes`.
  static func first(in bytes: ArraySlice<UInt8>) -> Outcome {
    // libcbor 0.8 does not know the tags 6 to 20, among them those of COSE (RFC 9052 section 2).
    if let initial = bytes.first, (0xC6...0xD4).contains(initial) {
      return .event(.tag(UInt64(initial & 0x1F)), bytes: 1)
    }
    var event: CBOREvent?
    let result = bytes.withUnsafeBufferPointer { buffer in
      withUnsafeMutablePointer(to: &event) { slot in
        var callbacks = Self.callbacks.table
        return cbor_stream_decode(buffer.baseAddress, buffer.count, &callbacks, slot)
      }
    }
    if result.status == CBOR_DECODER_NEDATA { return .truncated }
    guard result.status == CBOR_DECODER_FINISHED, let event, (1...bytes.count).contains(result.read) else {
      return .malformed
    }
    return .event(event, bytes: result.read)
  }

  /// The number in the item's head, where its encoding has a length to choose.
  var argument: UInt64? {
    switch self {
    case .unsigned(let number), .negative(let number), .array(let number), .map(let number), .tag(let number): number
    case .bytes(let bytes), .text(let bytes): UInt64(bytes.count)
    case .float, .boolean, .null, .undefined, .indefinite: nil
    }
  }

  private struct Callbacks: @unchecked Sendable {  // function pointers that are set once
    let table: cbor_callbacks
  }

  private static let callbacks = Callbacks(table: makeCallbacks())

  private static func makeCallbacks() -> cbor_callbacks {
    var table = cbor_empty_callbacks
    table.uint8 = { store(.unsigned(UInt64($1)), $0) }
    table.uint16 = { store(.unsigned(UInt64($1)), $0) }
    table.uint32 = { store(.unsigned(UInt64($1)), $0) }
    table.uint64 = { store(.unsigned($1), $0) }
    table.negint8 = { store(.negative(UInt64($1)), $0) }
    table.negint16 = { store(.negative(UInt64($1)), $0) }
    table.negint32 = { store(.negative(UInt64($1)), $0) }
    table.negint64 = { store(.negative($1), $0) }
    table.byte_string = { store(.bytes(Array(UnsafeBufferPointer(start: $1, count: Int($2)))), $0) }
    table.string = { store(.text(Array(UnsafeBufferPointer(start: $1, count: Int($2)))), $0) }
    table.array_start = { store(.array(count: UInt64(truncatingIfNeeded: $1)), $0) }
    table.map_start = { store(.map(count: UInt64(truncatingIfNeeded: $1)), $0) }
    table.tag = { store(.tag($1), $0) }
    table.float2 = { store(.float(Double($1)), $0) }
    table.float4 = { store(.float(Double($1)), $0) }
    table.float8 = { store(.float($1), $0) }
    table.boolean = { store(.boolean($1), $0) }
    table.null = { store(.null, $0) }
    table.undefined = { store(.undefined, $0) }
    table.byte_string_start = { store(.indefinite, $0) }
    table.string_start = { store(.indefinite, $0) }
    table.indef_array_start = { store(.indefinite, $0) }
    table.indef_map_start = { store(.indefinite, $0) }
    table.indef_break = { store(.indefinite, $0) }
    return table
  }
}

/// `slot` is the pointer that `CBOREvent.first(in:)` passed to the decoder: to its `event`, which is initialized and
/// of this type.
private func store(_ event: CBOREvent, _ slot: UnsafeMutableRawPointer?) {
  slot?.assumingMemoryBound(to: CBOREvent?.self).pointee = event
}
