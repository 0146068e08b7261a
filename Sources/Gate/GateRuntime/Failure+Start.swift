package import Commands
package import ConfigurationEngine

extension Failure {
  /// A fault that keeps a gate from starting.
  package init(_ fault: StartError) { self.init(.configuration, fault.description, hint: fault.hint) }

  /// The faults of a configuration.
  ///
  /// - Parameter hint: What to do in addition.
  package init(_ errors: ConfigurationErrors, hint: String? = nil) {
    self.init(.configuration, errors.messages + [hint.map(Message.hint)].compactMap(\.self))
  }
}
