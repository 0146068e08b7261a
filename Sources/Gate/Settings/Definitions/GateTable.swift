public import ConfigurationEngine

extension SettingsTable {
  /// The settings of the gate.
  ///
  /// Unknown variables without `__` are ignored: the tools define some (`SALLYPORT_AUTHORITY`), and container networks
  /// define others for a service named sallyport (`SALLYPORT_PORT`).
  public static let gate = SettingsTable(
    gateKeys, of: "sallyport", variablePrefix: gatePrefix, sample: "listen: { port: 6200 }", emptyVariables: .refused,
    isForeign: { !$0.dropFirst(gatePrefix.count).contains("__") })

  private static let gatePrefix = "SALLYPORT_"

  private static let gateKeys: [KeyDefinition] = keysToAdmin + ConsoleKeys.definitions + keysAfterAdmin

  private static let keysToAdmin: [KeyDefinition] = [
    Keys.version.definition,
    Keys.address.definition, Keys.port.definition, Keys.loops.definition,
    Keys.proxyProtocol.definition, Keys.trustedProxies.definition, Keys.forwardedFor.definition,
    Keys.maxRequestHead.definition,
    Keys.certificate.definition, Keys.privateKey.definition, Keys.furtherCertificate.definition,
    Keys.furtherKey.definition, Keys.acmeDomains.definition, Keys.acmeEmail.definition,
    Keys.acmeDirectory.definition, Keys.acmeProfile.definition, Keys.acmeCommonName.definition,
    Keys.acmeChallenge.definition, Keys.acmeHTTPListen.definition, Keys.acmeDNSHook.definition,
    Keys.acmeDNSServer.definition, Keys.acmeDNSKey.definition, Keys.acmeDNSWait.definition, Keys.acmeCA.definition,
    Keys.acmeBindingKeyID.definition, Keys.acmeBindingKey.definition, Keys.leastVersion.definition,
    Keys.certificateReload.definition,
    Keys.clientCA.definition, Keys.partialChain.definition, Keys.revocationLists.definition,
    Keys.allowedSubjects.definition,
    Keys.forbidWithProduction.definition,
    Keys.enforcement.definition, Keys.platform.definition, Keys.teamID.definition, Keys.bundleID.definition,
    Keys.environments.definition,
    Keys.allowedCategories.definition, Keys.missingCategory.definition,
    Keys.riskKey.definition, Keys.riskKeyID.definition, Keys.riskThreshold.definition, Keys.riskAction.definition,
    Keys.riskUnknown.definition, Keys.riskEndpoint.definition, Keys.longestPatchAge.definition,
    Keys.package.definition, Keys.signers.definition, Keys.securityLevel.definition, Keys.verifiedBoot.definition,
    Keys.bootKeys.definition, Keys.leastPatchLevel.definition, Keys.requiresRKP.definition,
    Keys.statusList.definition, Keys.statusListCA.definition, Keys.statusListRefresh.definition,
    Keys.statusListMaximumAge.definition,
    Keys.attestationRoot.definition, Keys.receiptRoot.definition, Keys.androidRoot.definition,
    Keys.challengeTTL.definition,
    Keys.challengeKeys.definition, Keys.challengeKeyRotation.definition, Keys.counterWindow.definition,
    Keys.routePath.definition, Keys.upstream.definition, Keys.balance.definition,
    Keys.stripPrefix.definition, Keys.rewrite.definition, Keys.routeHost.definition, Keys.forward.definition,
    Keys.upstreamCA.definition,
    Keys.upstreamName.definition, Keys.upstreamCertificate.definition, Keys.upstreamKey.definition,
    Keys.routeAudience.definition, Keys.routeSubprotocol.definition,
    Keys.healthPath.definition, Keys.healthInterval.definition,
    Keys.maxRouteHead.definition, Keys.maxResponseHead.definition, Keys.routeOrigins.definition,
    Keys.routeCredentials.definition,
    Keys.maxAge.definition, Keys.idleTimeout.definition, Keys.ping.definition, Keys.maxMessage.definition,
    Keys.closeOnRevoke.definition,
    Keys.store.definition, Keys.storePassword.definition, Keys.mostWaitingForStore.definition,
    Keys.pruneUnusedAfter.definition, Keys.keepDecisions.definition, Keys.mostDecisionsOfKey.definition,
    Keys.mostDecisions.definition,
    Keys.globalSessions.definition, Keys.connectionsPerAddress.definition, Keys.challengesPerAddress.definition,
    Keys.registrationsPerAddress.definition, Keys.upgradesPerAddress.definition,
    Keys.sessionsPerKey.definition, Keys.whenKeyIsFull.definition, Keys.upgradesPerKey.definition,
    Keys.issuer.definition, Keys.audience.definition, Keys.identityKeyLife.definition,
    Keys.identityKeyOverlap.definition, Keys.strippedHeaders.definition, Keys.keptHeaders.definition,
    Keys.tokenAudience.definition, Keys.tokenLifetime.definition, Keys.tokenURL.definition,
    Keys.tokenClientID.definition, Keys.tokenClientApps.definition, Keys.tokenClientLifetime.definition,
    Keys.tokenClientClaims.definition,
    Keys.adminListen.definition, Keys.adminGroup.definition, Keys.adminToken.definition,
  ]

  private static let keysAfterAdmin: [KeyDefinition] = [
    Keys.metricsListen.definition,
    Keys.telemetryCollector.definition, Keys.telemetryEncoding.definition, Keys.telemetrySample.definition,
    Keys.telemetryCA.definition,
    Keys.telemetryHeaders.definition,
    Keys.webhookURL.definition, Keys.webhookSecret.definition, Keys.webhookEvents.definition,
    Keys.webhookRefusals.definition, Keys.webhookCA.definition, Keys.webhookFolder.definition,
    Keys.webhookMostWaiting.definition,
    Keys.logFormat.definition, Keys.logLevel.definition,
    Keys.drainTimeout.definition, Keys.unreadyDelay.definition, Keys.linger.definition,
  ]
}

extension SettingsDocuments {
  /// The schema, the example and the reference of the gate's configuration.
  public static let gate = SettingsDocuments(
    of: .gate, referenceIntroduction: referenceIntroduction, exampleIntroduction: exampleIntroduction,
    shownLists: ["app_attest.apps", "routes"], shownKeys: ["tls.cert_file", "tls.key_file"])

  private static let referenceIntroduction = """
    # Configuration reference

    Every configuration key. Generated by `sallyport check --reference`.

    ## Overview

    List elements are counted from 0: `routes[].upstream` of the first route is `routes[0].upstream` on the command
    line (`--set`) and `SALLYPORT_ROUTES__0__UPSTREAM` in the environment. A key whose name ends in `_file` is a path.
    If a key with a credential is not set, the gate uses the file of that name in `$CREDENTIALS_DIRECTORY`.


    """

  private static let exampleIntroduction = """
    # yaml-language-server: $schema=sallyport.schema.json
    # Every key of the configuration. Generated by `sallyport check --example`.
    #
    # The values are the defaults. The certificate, its key, the app and the upstream are examples: replace them. Keys
    # without a default are commented out. Relative paths start from the folder of this file.
    #
    # Run it: sallyport run -c sallyport.yaml


    """
}
