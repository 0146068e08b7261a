/// Whether two byte strings are equal, in a time that depends on their lengths alone.
///
/// For secrets and authentication codes; lengths are not secret.
public func constantTimeEqual(_ first: some Collection<UInt8>, _ second: some Collection<UInt8>) -> Bool {
  guard first.count == second.count else { return false }
  var difference: UInt8 = 0
  for (a, b) in zip(first, second) { difference |= a ^ b }
  return difference == 0
}
