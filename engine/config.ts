/** The settings of one process, parsed once by `main.ts`; nothing else looks at the environment. */
import { HOUR_MS } from '../schema/clock.ts'
import type { HostAndPort } from './setting-kinds.ts'
import { type Setting, settings } from './settings.ts'

/** Text of each setting that is set, by name: the environment, and `.env` below it. */
export type Environment = Readonly<Record<string, string | undefined>>

export type Config = ReturnType<typeof readConfig>

/** One line that names the setting, the value and what is allowed. */
export class WrongSetting extends Error {
  override readonly name = 'WrongSetting'
}

/** @throws {WrongSetting} for the first setting whose text is not allowed. */
export function readConfig(environment: Environment) {
  const read: Read = (setting) => readSetting(setting, environment)
  const is: Said = (setting) => said(setting, environment)
  const config = {
    sip: readSip(read, is),
    apiListen: read(settings.apiListen),
    apiTls: readPair(read, is, settings.apiTlsCert, settings.apiTlsKey),
    publicUrl: read(settings.publicUrl),
    edgeListen: read(settings.edgeListen),
    edgeTls: readPair(read, is, settings.edgeTlsCert, settings.edgeTlsKey),
    httpConnectionsPerAddress: read(settings.httpConnectionsPerAddress),
    trustedProxies: read(settings.trustedProxies),
    databasePath: read(settings.databasePath),
    databaseUrl: read(settings.databaseUrl),
    databaseAwayMs: read(settings.databaseAwaySeconds) * 1_000,
    journalKeepMs: read(settings.journalKeepSeconds) * 1_000,
    instance: {
      name: read(settings.instanceName),
      url: read(settings.instanceUrl),
      sipUri: read(settings.instanceSipUri),
    },
    drachtio: {
      servers: read(settings.drachtioUrl),
      listen: read(settings.drachtioListen),
      secret: read(settings.drachtioSecret),
    },
    trustedSources: read(settings.trustedSources),
    edgeProxies: read(settings.edgeProxies),
    tenantNetworks: read(settings.tenantNetworks),
    ocs: {
      url: read(settings.ocsUrl),
      token: read(settings.ocsToken),
      timeoutMs: read(settings.ocsTimeoutMs),
      failMode: read(settings.ocsFailMode),
    },
    unknownCaller: read(settings.unknownCaller),
    exitCodes: read(settings.exitCodes),
    nodeTimeoutMs: read(settings.nodeTimeoutMs),
    nodeProgressTimeoutMs: read(settings.nodeProgressTimeoutMs),
    passedHeaders: read(settings.passedHeaders),
    ringTimeoutMs: read(settings.ringTimeoutSeconds) * 1_000,
    nonceSeconds: read(settings.nonceSeconds),
    sessionExpiresSeconds: read(settings.sessionExpiresSeconds),
    probe: readProbe(read),
    relays: read(settings.rtpengine) ?? [],
    recording: readRecording(read, is),
    mediaTimeoutMs: read(settings.mediaTimeoutSeconds) * 1_000,
    mediaTimeoutCharge: read(settings.mediaTimeoutCharge),
    mediaPolicy: read(settings.mediaPolicy),
    mediaDtmfListen: readDtmfListen(read, is),
    hooks: readHooks(read),
    paymentWebhookSecret: read(settings.paymentWebhookSecret),
    mcpAllowedHosts: read(settings.mcpAllowedHosts) ?? [],
    webhookPrivateTargets: read(settings.webhookPrivateTargets),
    smtp: read(settings.smtpUrl),
    smtpFrom: read(settings.smtpFrom),
    stir: readStir(read),
    secretKey: read(settings.secretKey),
    jwtSecret: read(settings.jwtSecret),
    admin: { username: read(settings.adminUsername), password: read(settings.adminPassword) },
    retention: {
      callRecordDays: read(settings.callRecordRetentionDays),
      auditDays: read(settings.auditRetentionDays),
      recordingDays: read(settings.recordingRetentionDays),
    },
    backup: {
      folder: read(settings.backupDir),
      intervalMs: read(settings.backupIntervalHours) * HOUR_MS,
      keep: read(settings.backupKeep),
    },
    traceMemoryBytes: read(settings.traceMemoryMb) * 1_048_576,
    hep: readHep(read),
    drainSeconds: read(settings.drainSeconds),
    logLevel: read(settings.logLevel),
  }
  refuseContradictions(config, is)
  if (config.databaseUrl !== undefined) refuseFileSettings(config, is)
  refuseListenersWithoutCertificate(config.sip, is)
  refuseOneAddressTwice(config, is)
  return config
}

/** An empty text counts as not set, as compose files and shells produce it. */
function readSetting<T>(setting: Setting<T>, environment: Environment): T {
  const text = environment[setting.name]
  const result = setting.read(text === '' ? undefined : text)
  if (result !== undefined) return result.value
  throw new WrongSetting(`${said(setting, environment)}; allowed is ${setting.allowed}`)
}

/** The value of a setting. */
type Read = <T>(setting: Setting<T>) => T

type NamedSetting = Pick<Setting<unknown>, 'name' | 'isSecret' | 'defaultText'>

/** `LOG_LEVEL is "loud"`: the start of a refusal. */
type Said = (setting: NamedSetting) => string

function said({ name, isSecret, defaultText = '' }: NamedSetting, environment: Environment) {
  const shown = isSecret
    ? 'set to a value that is not shown'
    : `"${environment[name] || defaultText}"`
  return `${name} is ${shown}`
}

const lacking = (what: string, other: NamedSetting): WrongSetting =>
  new WrongSetting(`${what}; ${other.name} must be set with it`)

const readSip = (read: Read, is: Said) => ({
  listen: read(settings.sipListen),
  advertisedHost: read(settings.sipAdvertisedHost),
  hostNames: read(settings.sipHostNames) ?? [],
  foreignDomains: read(settings.foreignDomains) ?? [],
  tls: readTls(read, is),
  webSocketOrigins: read(settings.sipWsOrigins),
  dnsServers: read(settings.sipDnsServers),
  connectionsPerAddress: read(settings.sipConnectionsPerAddress),
})

const readProbe = (read: Read) => ({
  intervalMs: read(settings.probeIntervalMs),
  timeoutMs: read(settings.probeTimeoutMs),
  gatewayIntervalMs: read(settings.gatewayProbeIntervalMs),
  failures: read(settings.probeFailures),
  successes: read(settings.probeSuccesses),
})

/** Undefined: calls are not recorded. */
function readRecording(read: Read, is: Said) {
  const [folder, spool] = [read(settings.recordingsPath), read(settings.recordingSpool)]
  const hasTone = read(settings.recordingTone) === 'on'
  const isRequired = read(settings.recordingRequired) === 'on'
  if (isRequired && folder === undefined)
    throw lacking(is(settings.recordingRequired), settings.recordingsPath)
  if (folder === undefined && spool !== undefined)
    throw lacking(is(settings.recordingSpool), settings.recordingsPath)
  if (folder !== undefined && spool === undefined)
    throw lacking(is(settings.recordingsPath), settings.recordingSpool)
  if (folder === undefined || spool === undefined) return undefined
  if (read(settings.rtpengine) === undefined)
    throw lacking(is(settings.recordingsPath), settings.rtpengine)
  return { folder, spool, hasTone, isRequired }
}

/** Undefined: no code of the operator is asked. */
function readHooks(read: <T>(setting: Setting<T>) => T) {
  const file = read(settings.hooksFile)
  const timeoutMs = read(settings.hooksTimeoutMs)
  const fallback = read(settings.hooksFallback)
  const memoryMb = read(settings.hooksMemoryMb)
  return file === undefined ? undefined : { file, timeoutMs, fallback, memoryMb }
}

/** The environment as code of the operator sees it: no value of a setting that is secret. */
export function withoutSecrets(environment: Environment): Readonly<Record<string, string>> {
  const secrets = new Set(
    Object.values(settings).flatMap(({ name, isSecret }) => (isSecret ? [name] : [])),
  )
  const shown: Record<string, string> = {}
  for (const [name, value] of Object.entries(environment))
    if (value !== undefined && !secrets.has(name)) shown[name] = value
  return shown
}

/** Undefined: relays do not tell of digits. */
function readDtmfListen(read: Read, is: Said) {
  const place = read(settings.mediaDtmfListen)
  if (place !== undefined && read(settings.rtpengine) === undefined)
    throw lacking(is(settings.mediaDtmfListen), settings.rtpengine)
  return place
}

/** Undefined without a certificate. */
function readTls(read: Read, is: Said) {
  const pair = readPair(read, is, settings.sipTlsCert, settings.sipTlsKey)
  const rest = {
    chainFile: read(settings.sipTlsChain),
    ...readTrust(read),
    clientCertificates: read(settings.sipTlsClientCertificates),
  }
  return pair && { ...pair, ...rest }
}

/** A certificate and its key, as PEM files. */
export interface CertificateFiles {
  readonly certFile: string
  readonly keyFile: string
}

/** Undefined: neither is set. */
function readPair(
  read: Read,
  is: Said,
  cert: Setting<string | undefined>,
  key: Setting<string | undefined>,
): CertificateFiles | undefined {
  const [certFile, keyFile] = [read(cert), read(key)]
  if (certFile === undefined && keyFile !== undefined) throw lacking(is(key), cert)
  if (certFile !== undefined && keyFile === undefined) throw lacking(is(cert), key)
  return certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile }
}

/** Undefined: no HEP is sent. */
function readHep(read: Read) {
  const server = read(settings.hepServer)
  const [agentId, password] = [read(settings.hepCaptureId), read(settings.hepPassword)]
  if (server === undefined) return undefined
  const { transport, host, port } = server
  const tls = transport === 'tls' ? readTrust(read) : undefined
  return { host, port, tls, agentId, password }
}

function readStir(read: Read) {
  const url = read(settings.stirSigningUrl)
  return {
    authorities: read(settings.stirAuthorities),
    maxAgeSeconds: read(settings.stirMaxAgeSeconds),
    certificateHosts: read(settings.stirCertificateHosts) ?? [],
    privateTargets: read(settings.stirPrivateTargets),
    signing: url === undefined ? undefined : { url, token: read(settings.stirSigningToken) },
  }
}

/** How the certificates of servers are checked that we call by TLS. */
const readTrust = (read: Read) => ({
  caFile: read(settings.sipTlsCa),
  minVersion: `TLSv${read(settings.sipTlsMinVersion)}` as const,
  verifyServers: read(settings.sipTlsVerify) === 'on',
})

function refuseListenersWithoutCertificate(
  sip: {
    readonly listen: readonly { readonly protocol: string }[]
    readonly tls: unknown
  },
  is: Said,
): void {
  const listener = sip.listen.find(({ protocol }) => protocol === 'tls' || protocol === 'wss')
  if (listener !== undefined && sip.tls === undefined)
    throw new WrongSetting(
      `${is(settings.sipListen)}: for ${listener.protocol}, SIP_TLS_CERT and SIP_TLS_KEY must be ` +
        'set with it',
    )
}

/** The system would say of the second one that another program has its address. */
function refuseOneAddressTwice(
  { apiListen, edgeListen }: { readonly apiListen: HostAndPort; readonly edgeListen: HostAndPort },
  is: Said,
): void {
  const { host, port } = edgeListen
  if (port !== 0 && port === apiListen.port && host === apiListen.host)
    throw new WrongSetting(
      `${is(settings.edgeListen)}, as API_LISTEN is; allowed is another address or port`,
    )
}

/** Refuses settings that only a database in a file knows. */
function refuseFileSettings(
  {
    backup,
    databasePath,
    drachtio,
  }: {
    readonly backup: { readonly folder: string | undefined }
    readonly databasePath: string
    readonly drachtio: { readonly servers: unknown }
  },
  is: Said,
): void {
  if (drachtio.servers !== undefined)
    throw new WrongSetting(
      'DRACHTIO_URL is set beside DATABASE_URL; allowed is one of them: a node reaches ' +
        'phones of another one by the embedded server only. ' +
        'Unset DRACHTIO_URL, and put drachtio-server in front of the nodes (GUIDE.md, "In ' +
        'front of several nodes")',
    )
  if (backup.folder !== undefined)
    throw new WrongSetting(
      `${is(settings.backupDir)} beside DATABASE_URL; allowed is one of them: a PostgreSQL ` +
        'database is copied with pg_dump, or as its server archives it',
    )
  if (databasePath === ':memory:')
    throw new WrongSetting(
      `${is(settings.databasePath)} beside DATABASE_URL; allowed is a place on a disk, for the ` +
        'journal of calls',
    )
}

function refuseContradictions(
  {
    drachtio,
    hep,
  }: {
    readonly drachtio: { servers: unknown; listen: unknown; secret: unknown }
    readonly hep: unknown
  },
  is: Said,
): void {
  if (hep !== undefined && drachtio.servers !== undefined)
    throw new WrongSetting(
      `${is(settings.hepServer)} beside DRACHTIO_URL; allowed is one of them: drachtio-server ` +
        'sends HEP itself (--homer)',
    )
  if (drachtio.listen !== undefined && drachtio.secret === undefined)
    throw lacking(is(settings.drachtioListen), settings.drachtioSecret)
  if (drachtio.listen !== undefined && drachtio.servers !== undefined)
    throw new WrongSetting(
      `${is(settings.drachtioListen)} beside DRACHTIO_URL; allowed is one of them: with ` +
        'DRACHTIO_URL there is no embedded server',
    )
}

/** Statuses that mean "up" unless a set says otherwise (SPECIFICATION.md §11). */
const OK_CODES = [{ from: 200, to: 299 }]

/** The probe settings by the names that the dispatcher has for them. */
export function probeDefaults({ probe }: Config) {
  const { intervalMs, timeoutMs, failures, successes } = probe
  return {
    intervalMs,
    timeoutMs,
    okCodes: OK_CODES,
    failuresToProbing: failures,
    successesToActive: successes,
  }
}
