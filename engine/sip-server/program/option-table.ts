/**
 * Every option of this program: its own, and those of drachtio-server that have an effect here. The
 * parser, `--help`, the table of the README and the tests are made from it.
 */
import {
  applicationUri,
  dnsServers,
  flag,
  handlerUri,
  host,
  hosts,
  ipAddress,
  listenEndpoints,
  networks,
  oneOf,
  origins,
  endpoint,
  endpointOrHost,
  endpointOrPort,
  port,
  sipUri,
  text,
  tlsVersion,
  wholeNumber,
  type OptionKind,
} from './kinds.ts'

export interface OptionRow<T> {
  readonly kind: OptionKind<T>
  readonly meaning: string
  /** Name of the option without `--`. */
  readonly option?: string
  /** One letter. */
  readonly short?: string
  /** Another name of the option. */
  readonly alias?: string
  /** The name of the value behind the option; absent: the option takes none. */
  readonly value?: string
  /** Names of variables; of several that are set the first counts. */
  readonly environment?: readonly string[]
  /** Paths in the file below `<drachtio>`, an attribute behind `@`. */
  readonly xml?: readonly string[]
  /** Why the program does not start with it, and what to do instead. */
  readonly refused?: string
  /** The option belongs to the `--contact` before it. */
  readonly isOfContact?: true
  /** The file has more than one text for it: read by itself. */
  readonly isStructure?: true
}

const row = <T>(
  kind: OptionKind<T>,
  meaning: string,
  names: Omit<OptionRow<T>, 'kind' | 'meaning'>,
): OptionRow<T> => ({
  kind,
  meaning,
  ...names,
})

const milliseconds = wholeNumber(1, 600_000)
const refresher = oneOf('none', 'uac', 'uas')
const logLevel = oneOf('silent', 'fatal', 'error', 'warn', 'warning', 'notice', 'info', 'debug')

export const optionTable = {
  // The program itself.
  file: row(
    text,
    'configuration file; default: /etc/drachtio.conf.xml, if there is one and --listen is ' +
      'not given',
    { option: 'file', short: 'f', value: 'FILE', environment: ['DRACHTIO_CONFIG_FILE_PATH'] },
  ),
  noConfig: row(flag, 'no configuration file is read', { option: 'noconfig' }),
  help: row(flag, 'prints this', { option: 'help', short: 'h' }),
  version: row(flag, 'prints the version', { option: 'version', short: 'v' }),
  daemon: row(flag, 'goes to the background', {
    option: 'daemon',
    refused: 'run it by systemd with Type=exec, in a container, or with `nohup … &`',
  }),
  user: row(text, 'the user that a daemon runs as', {
    option: 'user',
    short: 'u',
    value: 'USER',
    refused:
      'start it as that user; `setcap cap_net_bind_service` or systemd ' +
      '(AmbientCapabilities) give it low ports',
  }),

  // Options of the addresses that serve SIP.
  contact: row(
    text,
    'address to bind, such as sip:*:5060;transport=udp,tcp; may be given again and again',
    {
      option: 'contact',
      short: 'c',
      value: 'URI',
      isOfContact: true,
      isStructure: true,
      xml: ['sip/contacts/contact', 'sip/contact'],
    },
  ),
  externalIp: row(ipAddress, 'address that this contact shows outside its local net', {
    option: 'external-ip',
    short: 'x',
    value: 'IP',
    isOfContact: true,
    isStructure: true,
    xml: ['sip/contacts/contact@external-ip'],
  }),
  localNet: row(
    networks,
    'networks that this contact reaches first, and that see its bound address',
    {
      option: 'local-net',
      short: 'n',
      value: 'CIDR',
      isOfContact: true,
      isStructure: true,
      xml: ['sip/contacts/contact@local-net'],
    },
  ),
  dnsName: row(hosts, 'host names that mean this contact', {
    option: 'dns-name',
    short: 'd',
    value: 'NAME',
    isOfContact: true,
    isStructure: true,
    xml: ['sip/contacts/contact@dns-names'],
  }),
  localDomain: row(hosts, 'host names that mean every contact', {
    environment: ['DRACHTIO_LOCAL_DOMAIN'],
  }),
  listen: row(listenEndpoints, 'the same as contacts in another form: udp, tcp, tls, ws, wss', {
    option: 'listen',
    value: 'udp/HOST:PORT,…',
  }),
  advertisedHost: row(host, 'what contacts without an external address show', {
    environment: ['SIP_ADVERTISED_HOST'],
  }),
  outboundProxy: row(
    sipUri,
    'where requests outside dialogs go that name no next hop by themselves',
    {
      xml: ['sip/outbound-proxy'],
    },
  ),
  webSocketOrigins: row(origins, 'web pages whose WebSockets are taken; default: all', {
    environment: ['SIP_WS_ORIGINS'],
  }),
  dnsServers: row(dnsServers, 'DNS servers; default: those of the system', {
    environment: ['SIP_DNS_SERVERS'],
  }),

  // Options of the port that applications connect to.
  address: row(host, 'address that applications connect to; default: all', {
    option: 'address',
    value: 'IP',
    environment: ['DRACHTIO_ADMIN_ADDRESS'],
    xml: ['admin'],
  }),
  port: row(port, 'port that applications connect to; default: 9022', {
    option: 'port',
    short: 'p',
    value: 'PORT',
    environment: ['DRACHTIO_ADMIN_TCP_PORT'],
    xml: ['admin@port'],
  }),
  tlsPort: row(wholeNumber(0, 65_535), 'the same by TLS; 0 and by default: nowhere', {
    option: 'tls-port',
    value: 'PORT',
    environment: ['DRACHTIO_ADMIN_TLS_PORT'],
    xml: ['admin@tls-port'],
  }),
  admin: row(endpoint, 'address and port in one', { option: 'admin', value: 'HOST:PORT' }),
  adminTls: row(endpoint, 'the same by TLS', { option: 'admin-tls', value: 'HOST:PORT' }),
  secret: row(text, 'what applications must present; there is no default', {
    option: 'secret',
    value: 'SECRET',
    environment: ['DRACHTIO_SECRET'],
    xml: ['admin@secret'],
  }),
  keepAliveSeconds: row(
    wholeNumber(0, 86_400),
    'TCP keep-alive of applications; 0: none; default: 45',
    {
      option: 'tcp-keepalive-interval',
      value: 'SECONDS',
      environment: ['DRACHTIO_TCP_KEEPALIVE_INTERVAL'],
      xml: ['admin@tcp-keepalive'],
    },
  ),
  frameLength: row(
    oneOf('bytes', 'characters'),
    'what lengths count for applications: characters on drachtio-srf before 5.0, else bytes',
    { option: 'frame-length', value: 'bytes|characters' },
  ),
  handler: row(
    applicationUri,
    'connect to this application for each request: tcp://host:port, tls://host:port',
    { option: 'handler', value: 'URI' },
  ),
  httpHandler: row(
    handlerUri,
    'is asked by HTTP what becomes of each new request; or tcp://host:port as --handler',
    {
      option: 'http-handler',
      short: 'a',
      value: 'URL',
      isStructure: true,
      environment: ['DRACHTIO_HTTP_HANDLER_URI'],
      xml: ['request-handlers/request-handler'],
    },
  ),
  httpMethod: row(oneOf('get', 'post'), 'how: POST carries the request itself', {
    option: 'http-method',
    short: 'm',
    value: 'GET|POST',
    isStructure: true,
    xml: ['request-handlers/request-handler@http-method'],
  }),
  handlerSipMethod: row(text, 'of which SIP method; default: * (all others)', {
    xml: ['request-handlers/request-handler@sip-method'],
    isStructure: true,
  }),
  handlerVerifies: row(
    flag,
    'whether the certificate of an https handler counts; of --http-handler it does',
    { xml: ['request-handlers/request-handler@verify-peer'], isStructure: true },
  ),

  // TLS.
  keyFile: row(text, 'key of the certificate (PEM)', {
    option: 'key-file',
    alias: 'key',
    value: 'FILE',
    environment: ['DRACHTIO_TLS_KEY_FILE', 'SIP_TLS_KEY'],
    xml: ['sip/tls/key-file'],
  }),
  certFile: row(text, 'certificate for tls and wss (PEM)', {
    option: 'cert-file',
    alias: 'cert',
    value: 'FILE',
    environment: ['DRACHTIO_TLS_CERT_FILE', 'SIP_TLS_CERT'],
    xml: ['sip/tls/cert-file'],
  }),
  chainFile: row(text, 'the rest of its chain (PEM)', {
    option: 'chain-file',
    value: 'FILE',
    environment: ['DRACHTIO_TLS_CHAIN_FILE', 'SIP_TLS_CHAIN'],
    xml: ['sip/tls/chain-file'],
  }),
  caFile: row(text, 'trusted CA certificates (PEM)', {
    option: 'ca',
    value: 'FILE',
    environment: ['SIP_TLS_CA'],
  }),
  minTlsVersion: row(tlsVersion, 'oldest TLS that is spoken; default: 1.2', {
    option: 'min-tls-version',
    value: 'VERSION',
    environment: ['DRACHTIO_MIN_TLS_VERSION', 'SIP_TLS_MIN_VERSION'],
    xml: ['sip/tls/min-tls-version'],
  }),
  ciphers: row(text, 'cipher suites, as OpenSSL names them', {
    option: 'tls-cipherlist',
    value: 'LIST',
    environment: ['DRACHTIO_TLS_CIPHER_LIST'],
  }),
  verifiesClients: row(flag, 'TLS peers that connect must show a valid certificate', {
    environment: ['DRACHTIO_TLS_VERIFY_CLIENT_CERT'],
  }),
  clientCertificates: row(oneOf('off', 'optional', 'required'), 'the same in finer steps', {
    environment: ['SIP_TLS_CLIENT_CERTIFICATES'],
  }),
  verifiesServers: row(
    oneOf('on', 'off'),
    'whether servers that we connect to must show one; default: on',
    {
      environment: ['SIP_TLS_VERIFY'],
    },
  ),

  // Requests and timers.
  optionsUserAgent: row(
    text,
    'OPTIONS with this User-Agent get 200, and no application hears of them',
    {
      option: 'user-agent-options-auto-respond',
      value: 'NAME',
      environment: ['DRACHTIO_USER_AGENT_OPTIONS_AUTO_RESPOND'],
      xml: ['sip/user-agent-options-auto-respond'],
    },
  ),
  rejectsRegisterWithoutRealm: row(
    flag,
    'REGISTER for an IP address in place of a domain gets 403',
    {
      option: 'reject-register-with-no-realm',
      environment: ['DRACHTIO_REJECT_REGISTER_WITH_NO_REALM'],
      xml: ['sip/reject-register-with-no-realm'],
    },
  ),
  spammerAction: row(
    oneOf('reject', 'discard'),
    'what those get that the headers below describe: 603, or no answer (default)',
    { xml: ['sip/spammers@action'] },
  ),
  spammerTcpAction: row(oneOf('reject', 'discard'), 'the same on streams; default: discard', {
    xml: ['sip/spammers@tcp-action'],
  }),
  spammerHeader: row(text, 'which header is looked at: User-Agent, From or To (their users)', {
    xml: ['sip/spammers/header@name'],
    isStructure: true,
  }),
  spammerValue: row(text, 'texts of which one is in the header', {
    xml: ['sip/spammers/header/value'],
    isStructure: true,
  }),
  blacklistFile: row(
    text,
    'addresses whose messages are dropped, one a line; read again when it changes',
    { option: 'blacklist-file', value: 'FILE' },
  ),
  alwaysSend180: row(flag, '180 follows 100 at once for each INVITE', {
    option: 'always-send-180',
  }),
  defaultRefresher: row(
    refresher,
    'who refreshes a session when the caller leaves it to us; default: none, no timer',
    {
      xml: ['sip/session-timers@default-refresher'],
    },
  ),
  t1: row(milliseconds, 'timer T1; default: 500', { xml: ['sip/timers/t1'] }),
  t2: row(milliseconds, 'timer T2; default: 4000', { xml: ['sip/timers/t2'] }),
  t4: row(milliseconds, 'timer T4; default: 5000', { xml: ['sip/timers/t4'] }),
  t1x64: row(milliseconds, 'how long a transaction may take; default: 32000', {
    xml: ['sip/timers/t1x64'],
  }),
  disablesNatDetection: row(
    flag,
    'requests in dialogs go to the Contact, wherever the peer sent from',
    {
      option: 'disable-nat-detection',
    },
  ),

  // Logs and metrics.
  logLevel: row(logLevel, 'least level of log lines; default: info', {
    option: 'loglevel',
    short: 'l',
    value: 'LEVEL',
    environment: ['DRACHTIO_LOGLEVEL', 'LOG_LEVEL'],
    xml: ['logging/loglevel'],
  }),
  homer: row(endpointOrHost(0), 'a copy of each SIP message goes there (HEP3 by UDP)', {
    option: 'homer',
    value: 'HOST[:PORT]',
    environment: ['DRACHTIO_HOMER_ADDRESS'],
    xml: ['sip/capture-server'],
  }),
  homerPort: row(port, 'its port; default: 9060', {
    environment: ['DRACHTIO_HOMER_PORT'],
    xml: ['sip/capture-server@port'],
  }),
  homerId: row(wholeNumber(1, 4_294_967_295), 'by which number it knows this server', {
    option: 'homer-id',
    value: 'NUMBER',
    environment: ['DRACHTIO_HOMER_ID'],
    xml: ['sip/capture-server@id'],
  }),
  metrics: row(endpointOrPort, 'where Prometheus may ask for /metrics', {
    option: 'prometheus-scrape-port',
    alias: 'metrics',
    value: '[HOST:]PORT',
    environment: ['DRACHTIO_PROMETHEUS_SCRAPE_PORT'],
  }),
  metricsPort: row(port, 'the same', { xml: ['monitoring/prometheus@port'] }),
  metricsAddress: row(host, 'its address; default: all', { xml: ['monitoring/prometheus'] }),
} as const

export type OptionTable = typeof optionTable
export type OptionName = keyof OptionTable

type ValueOf<R> = R extends OptionRow<infer T> ? T : never

/** The values of the options that were set, by name. */
export type Values = { readonly [Name in OptionName]?: ValueOf<OptionTable[Name]> }

export const optionRows = Object.entries(optionTable) as readonly (readonly [
  OptionName,
  OptionRow<unknown>,
])[]
