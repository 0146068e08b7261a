/// Whether two byte strings are equal. The time depends only on their lengths.
///
/// For secrets and authentication codes; lengths are not secret.
@inlinable
public func constantTimeEqual(_ first: some Collection<UInt8>, _ second: some Collection<UInt8>) -> Bool {
  first.withBytes { first in second.withBytes { second in constantTimeEqual(first, second) } }
}

@usableFromInline
func constantTimeEqual(_ first: UnsafeBufferPointer<UInt8>, _ second: UnsafeBufferPointer<UInt8>) -> Bool {
  guard first.count == second.count else { return false }
  var difference: UInt8 = 0
  for index in first.indices { difference |= first[index] ^ second[index] }
  return difference == 0
}
