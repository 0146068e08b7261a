internal import Glibc
public import Transport

extension Engine {
  /// Listens at `address` for a moment, to check that the gate could listen there.
  ///
  /// - Throws: `StartFault` with the reason if it could not.
  public static func tryListening(at address: SocketAddress) throws(StartFault) {
    do throws(SystemCallError) {
      try open(address, count: 1).close()
    } catch {
      throw StartFault(description: "\(address): \(error)", number: error.number)
    }
  }
}
