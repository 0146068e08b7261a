internal import Glibc
public import Transport

extension Engine {
  /// Listens at `address` for a moment, to check that the gate could listen there.
  ///
  /// - Throws: `StartError` with the reason if it could not.
  public static func tryListening(at address: SocketAddress) throws(StartError) {
    do throws(SystemCallError) {
      try open(address, count: 1).close()
    } catch {
      throw StartError(description: "\(address): \(error)", number: error.number)
    }
  }
}
