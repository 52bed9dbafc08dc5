import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { expect, test } from 'vitest'
import { readConfig, WrongSetting } from '../../engine/config.ts'
import { settings } from '../../engine/settings.ts'

test('an empty environment gives the documented defaults', () => {
  expect(readConfig({})).toEqual({
    sip: {
      listen: [
        { protocol: 'udp', host: '0.0.0.0', port: 5060 },
        { protocol: 'tcp', host: '0.0.0.0', port: 5060 },
      ],
      advertisedHost: undefined,
      hostNames: [],
      foreignDomains: [],
      tls: undefined,
      webSocketOrigins: undefined,
      connectionsPerAddress: 256,
    },
    apiListen: { host: '127.0.0.1', port: 8080 },
    publicUrl: undefined,
    edgeListen: { host: '127.0.0.1', port: 8081 },
    httpConnectionsPerAddress: 256,
    trustedProxies: [],
    databasePath: 'data/tollgate.db',
    databaseUrl: undefined,
    databaseAwayMs: 10_000,
    journalKeepMs: 60_000,
    node: { name: undefined, url: undefined },
    drachtio: { servers: undefined, listen: undefined, secret: undefined },
    trustedSources: ['127.0.0.0/8', '::1/128'],
    edgeProxies: [],
    tenantNetworks: [],
    ocs: { url: undefined, token: undefined, timeoutMs: 1000, failMode: 'closed' },
    unknownCaller: 'deny',
    nodeTimeoutMs: 1500,
    nodeProgressTimeoutMs: 6_000,
    passedHeaders: new Set(),
    ringTimeoutMs: 180_000,
    nonceSeconds: 300,
    sessionExpiresSeconds: 1_800,
    probe: { intervalMs: 500, timeoutMs: 400, gatewayIntervalMs: 2_000, failures: 3, successes: 3 },
    relays: [],
    paymentWebhookSecret: undefined,
    mcpAllowedHosts: [],
    mediaPolicy: 'bypass',
    recording: undefined,
    mediaTimeoutMs: 60_000,
    mediaTimeoutCharge: 'last_packet',
    webhookPrivateTargets: 'deny',
    secretKey: undefined,
    jwtSecret: undefined,
    admin: { username: 'admin', password: undefined },
    retention: { callRecordDays: 400, auditDays: 400, recordingDays: 90 },
    backup: { folder: undefined, intervalMs: 86_400_000, keep: 7 },
    traceMemoryBytes: 33_554_432,
    drainSeconds: 30,
    logLevel: 'info',
  })
})

const right: [string, string, (config: ReturnType<typeof readConfig>) => unknown, unknown][] = [
  ['NODE_SIP_URI', 'sip:[2001:db8::1]:5070', ({ node }) => node.sipUri, 'sip:[2001:db8::1]:5070'],
  [
    'NODE_SIP_URI',
    'sip:a.example;transport=tls',
    ({ node }) => node.sipUri,
    'sip:a.example;transport=tls',
  ],
  [
    'SIP_LISTEN',
    'udp/[::1]:5062, tcp/sip.example.com:0',
    (config) => config.sip.listen,
    [
      { protocol: 'udp', host: '::1', port: 5062 },
      { protocol: 'tcp', host: 'sip.example.com', port: 0 },
    ],
  ],
  [
    'SIP_LISTEN',
    'udp/192.0.2.1,tcp/[::1],ws/192.0.2.1',
    (config) => config.sip.listen.map(({ protocol, host, port }) => `${protocol} ${host} ${port}`),
    ['udp 192.0.2.1 5060', 'tcp ::1 5060', 'ws 192.0.2.1 80'],
  ],
  [
    'RTPENGINE',
    'udp/127.0.0.1:2223, udp/Relay.example.com:22222;weight=3,udp/[::1]:2223;weight=0',
    (config) => config.relays,
    [
      { name: '127.0.0.1:2223', host: '127.0.0.1', port: 2_223, weight: 1 },
      { name: 'Relay.example.com:22222', host: 'Relay.example.com', port: 22_222, weight: 3 },
      { name: '[::1]:2223', host: '::1', port: 2_223, weight: 0 },
    ],
  ],
  [
    'SIP_WS_ORIGINS',
    'https://phone.example.com, http://LocalHost:8000',
    (config) => config.sip.webSocketOrigins,
    ['https://phone.example.com', 'http://localhost:8000'],
  ],
  [
    'SIP_DNS_SERVERS',
    '10.0.0.2, 10.0.0.3:5353,2001:db8::2,[::1]:53',
    (config) => config.sip.dnsServers,
    ['10.0.0.2', '10.0.0.3:5353', '2001:db8::2', '[::1]:53'],
  ],
  [
    'SIP_ADVERTISED_HOST',
    'sip.example.com',
    (config) => config.sip.advertisedHost,
    'sip.example.com',
  ],
  [
    'FOREIGN_DOMAINS',
    'Friends.example, other.example',
    (config) => config.sip.foreignDomains,
    ['friends.example', 'other.example'],
  ],
  ['SIP_HOST_NAMES', 'SBC.example.com', (config) => config.sip.hostNames, ['sbc.example.com']],
  [
    'MCP_ALLOWED_HOSTS',
    'Tollgate.example.com, gate',
    (config) => config.mcpAllowedHosts,
    ['tollgate.example.com', 'gate'],
  ],
  ['API_LISTEN', '0.0.0.0:80', (config) => config.apiListen, { host: '0.0.0.0', port: 80 }],
  [
    'DRACHTIO_URL',
    'drachtio://:cymru@10.0.0.1:9022, drachtio://:other@sip-2.example:9022/',
    (config) => config.drachtio.servers,
    [
      { secret: 'cymru', host: '10.0.0.1', port: 9022 },
      { secret: 'other', host: 'sip-2.example', port: 9022 },
    ],
  ],
  [
    'DRACHTIO_URL',
    'drachtios://:cymru@sip.example:9023,drachtios://:other@[::1]:9023/?ca=/etc/ca.pem',
    (config) => config.drachtio.servers,
    [
      { secret: 'cymru', host: 'sip.example', port: 9023, tls: { caFile: undefined } },
      { secret: 'other', host: '::1', port: 9023, tls: { caFile: '/etc/ca.pem' } },
    ],
  ],
  [
    'TRUSTED_SOURCES',
    '10.0.0.0/8, 192.0.2.7,2001:db8::/32',
    (config) => config.trustedSources,
    ['10.0.0.0/8', '192.0.2.7/32', '2001:db8::/32'],
  ],
  ['TRUSTED_SOURCES', 'none', (config) => config.trustedSources, []],
  ['EDGE_PROXIES', 'none', (config) => config.edgeProxies, []],
  [
    'EDGE_PROXIES',
    '10.0.0.5=acme+globex, 2001:db8::/32=acme',
    (config) => config.edgeProxies,
    [
      { network: '10.0.0.5/32', tenants: ['acme', 'globex'] },
      { network: '2001:db8::/32', tenants: ['acme'] },
    ],
  ],
  ['OCS_URL', 'https://ocs.example.com/', (config) => config.ocs.url, 'https://ocs.example.com'],
  ['OCS_FAIL_MODE', 'open', (config) => config.ocs.failMode, 'open'],
  ['CDR_RETENTION_DAYS', '90', (config) => config.retention.callRecordDays, 90],
  ['AUDIT_RETENTION_DAYS', '365', (config) => config.retention.auditDays, 365],
  ['RECORDING_RETENTION_DAYS', '0', (config) => config.retention.recordingDays, 0],
  ['DRAIN_SECONDS', '0', (config) => config.drainSeconds, 0],
  ['PROBE_INTERVAL_MS', '', (config) => config.probe.intervalMs, 500],
]

test.each(right)('%s=%s is understood', (name, value, pick, expected) => {
  expect(pick(readConfig({ [name]: value }))).toEqual(expected)
})

const wrong: [string, string][] = [
  ...['tcp:homer:9060', 'homer:0', 'homer:70000', 'http://homer', 'a b'].map(
    (value): [string, string] => ['HEP_SERVER', value],
  ),
  ...['127.0.0.1:2223', 'tcp/127.0.0.1:2223', 'udp/127.0.0.1', 'udp/127.0.0.1:0'].map(
    (value): [string, string] => ['RTPENGINE', value],
  ),
  ...[';weight=101', ';weight=-1', ';weight=', ';wait=1', ',', ',udp/127.0.0.1:2223'].map(
    (rest): [string, string] => ['RTPENGINE', `udp/127.0.0.1:2223${rest}`],
  ),
  ['RTPENGINE', Array.from({ length: 33 }, (_, n) => `udp/10.0.0.${n}:2223`).join()],
  ['SIP_LISTEN', '0.0.0.0:5060'],
  ['SIP_LISTEN', 'udp/0.0.0.0:70000'],
  ['SIP_LISTEN', 'udp/0.0.0.0:5060,'],
  ['SIP_LISTEN', 'sctp/0.0.0.0:5060'],
  ['SIP_LISTEN', 'sctp/0.0.0.0:5060'],
  ['SIP_WS_ORIGINS', 'https://phone.example.com/page'],
  ['SIP_TLS_MIN_VERSION', '1.1'],
  ['SIP_TLS_CLIENT_CERTIFICATES', 'yes'],
  ['SIP_TLS_VERIFY', 'no'],
  ['SIP_DNS_SERVERS', 'dns.example.com'],
  ['SIP_DNS_SERVERS', '10.0.0.2:0'],
  ['SIP_ADVERTISED_HOST', 'not a host'],
  ['SIP_SESSION_EXPIRES_SECONDS', '89'],
  ...['10.0.0.1', 'sip:', 'sip:user@10.0.0.1', 'sip:10.0.0.1;transport=ws', 'tel:1'].map(
    (value): [string, string] => ['NODE_SIP_URI', value],
  ),
  ['NODE_SIP_URI', 'sip:10.0.0.1;lr'],
  ['API_LISTEN', '8080'],
  ['EDGE_LISTEN', '[127.0.0.1]:80'],
  ['TRUSTED_SOURCES', '10.0.0.0/33'],
  ['TRUSTED_SOURCES', 'localhost'],
  ['EDGE_PROXIES', '10.0.0.5'],
  ['EDGE_PROXIES', '10.0.0.5=*'],
  ['EDGE_PROXIES', 'proxy=acme'],
  ['OCS_URL', 'ftp://ocs.example.com'],
  ['OCS_TIMEOUT_MS', 'abc'],
  ['OCS_TIMEOUT_MS', '49'],
  ['OCS_FAIL_MODE', 'shut'],
  ['UNKNOWN_CALLER', 'maybe'],
  ['PROBE_FAILURES', '0'],
  ['PROBE_FAILURES', '1.5'],
  ['CDR_RETENTION_DAYS', '1.5'],
  ['AUDIT_RETENTION_DAYS', '-1'],
  ['DRAIN_SECONDS', '-1'],
  ['LOG_LEVEL', 'loud'],
]

test.each(wrong)(
  '%s=%s is refused in one line that names both and what is allowed',
  (name, value) => {
    const allowed = Object.values(settings).find((setting) => setting.name === name)?.allowed
    expect(() => readConfig({ [name]: value })).toThrow(
      new WrongSetting(`${name} is "${value}"; allowed is ${allowed}`),
    )
  },
)

const certificate = { SIP_TLS_CERT: 'cert.pem', SIP_TLS_KEY: 'key.pem' }

test.each([
  ['homer.example', 'homer.example', 9_060, false],
  ['udp:[::1]:9063', '::1', 9_063, false],
  ['tls/10.0.0.9', '10.0.0.9', 9_060, true],
  ['tls:homer.example:9061', 'homer.example', 9_061, true],
  ['tls://homer.example:9061', 'homer.example', 9_061, true],
])('HEP_SERVER=%s is %s at %s, by TLS: %s', (HEP_SERVER, host, port, isTls) => {
  const { hep } = readConfig({ HEP_SERVER, HEP_CAPTURE_ID: '7', SIP_TLS_CA: 'ca.pem' })
  const tls = { caFile: 'ca.pem', minVersion: 'TLSv1.2', verifyServers: true }
  expect(hep).toEqual({ host, port, agentId: 7, tls: isTls ? tls : undefined })
})

test('with DRACHTIO_URL no HEP is sent from here', () => {
  const DRACHTIO_URL = 'drachtio://:cymru@10.0.0.1:9022'
  expect(() => readConfig({ HEP_SERVER: 'homer', DRACHTIO_URL })).toThrow(
    'HEP_SERVER is set beside DRACHTIO_URL; allowed is one of them',
  )
})

test.each(['tls', 'wss'])('a %s listener needs a certificate and its key', (protocol) => {
  const SIP_LISTEN = `udp/0.0.0.0:5060,${protocol}/0.0.0.0:5061`
  expect(() => readConfig({ SIP_LISTEN })).toThrow(
    `SIP_LISTEN has ${protocol}; SIP_TLS_CERT and SIP_TLS_KEY must be set with it`,
  )
  expect(() => readConfig({ SIP_LISTEN, SIP_TLS_CERT: 'cert.pem' })).toThrow(
    'SIP_TLS_CERT and SIP_TLS_KEY must be set together',
  )
  expect(readConfig({ SIP_LISTEN, ...certificate }).sip.listen).toContainEqual({
    protocol,
    host: '0.0.0.0',
    port: 5_061,
  })
})

test('TLS verifies servers, asks no client for a certificate and speaks 1.2 or newer, unless told', () => {
  expect(readConfig(certificate).sip.tls).toEqual({
    certFile: 'cert.pem',
    keyFile: 'key.pem',
    chainFile: undefined,
    caFile: undefined,
    minVersion: 'TLSv1.2',
    clientCertificates: 'off',
    verifyServers: true,
  })
  const settings = {
    SIP_TLS_CHAIN: 'chain.pem',
    SIP_TLS_CA: 'ca.pem',
    SIP_TLS_MIN_VERSION: '1.3',
    SIP_TLS_CLIENT_CERTIFICATES: 'required',
    SIP_TLS_VERIFY: 'off',
  }
  expect(readConfig({ ...certificate, ...settings }).sip.tls).toEqual({
    certFile: 'cert.pem',
    keyFile: 'key.pem',
    chainFile: 'chain.pem',
    caFile: 'ca.pem',
    minVersion: 'TLSv1.3',
    clientCertificates: 'required',
    verifyServers: false,
  })
})

test('the value of a secret is not shown when it is wrong', () => {
  expect(() => readConfig({ JWT_SECRET: 'hunter2' })).toThrow(/^JWT_SECRET is set to a value that/)
  expect(() => readConfig({ SECRET_KEY: 'hunter2' })).toThrow(/^SECRET_KEY is set to a value that/)
  expect(() => readConfig({ DRACHTIO_URL: 'drachtio:hunter2@h:9022' })).toThrow(
    /^DRACHTIO_URL is set to a value that [^"]*allowed is a comma list of drachtio:/,
  )
  for (const name of ['JWT_SECRET', 'DRACHTIO_URL'])
    expect(() => readConfig({ [name]: 'hunter2' })).not.toThrow(/hunter2/)
})

test('a listener for drachtio apps needs a secret, and an embedded server', () => {
  const DRACHTIO_LISTEN = '127.0.0.1:9022'
  expect(() => readConfig({ DRACHTIO_LISTEN })).toThrow('DRACHTIO_SECRET must be set with it')
  expect(() =>
    readConfig({ DRACHTIO_LISTEN, DRACHTIO_SECRET: 'x', DRACHTIO_URL: 'drachtio://:x@h:9022' }),
  ).toThrow('allowed is one of them')
})

test('recording needs a folder, the spool of a relay, and a relay', () => {
  const environment = {
    RTPENGINE: 'udp/127.0.0.1:2223',
    RECORDINGS_PATH: '/var/lib/recordings',
    RECORDING_SPOOL: '/var/spool/rtpengine',
    RECORDING_TONE: 'on',
  }
  expect(readConfig(environment).recording).toEqual({
    folder: '/var/lib/recordings',
    spool: '/var/spool/rtpengine',
    hasTone: true,
    isRequired: false,
  })
  expect(readConfig({ ...environment, RECORDING_REQUIRED: 'on' }).recording?.isRequired).toBe(true)
  expect(() => readConfig({ RECORDING_REQUIRED: 'on' })).toThrow(WrongSetting)
  for (const missing of ['RTPENGINE', 'RECORDINGS_PATH', 'RECORDING_SPOOL'])
    expect(() => readConfig({ ...environment, [missing]: undefined })).toThrow(WrongSetting)
})

test('to hear of digits needs a relay', () => {
  const environment = { RTPENGINE: 'udp/127.0.0.1:2223', MEDIA_DTMF_LISTEN: '127.0.0.1:22223' }
  const place = { host: '127.0.0.1', port: 22_223 }
  expect(readConfig(environment).mediaDtmfListen).toEqual(place)
  expect(() => readConfig({ ...environment, RTPENGINE: undefined })).toThrow(WrongSetting)
})

test('DRACHTIO_URL does not go with DATABASE_URL: nodes could not reach the phones of each other', () => {
  const DATABASE_URL = 'postgres://tollgate@localhost/tollgate'
  const DRACHTIO_URL = 'drachtio://:secret@192.0.2.1:9022'
  expect(() => readConfig({ DATABASE_URL, DRACHTIO_URL })).toThrow(
    /^DRACHTIO_URL is set beside DATABASE_URL; .*Unset DRACHTIO_URL, and put drachtio-server in front/,
  )
  expect(readConfig({ DRACHTIO_URL }).drachtio.servers).toHaveLength(1)
})

test('BACKUP_DIR does not go with DATABASE_URL, which has its own copies', () => {
  const DATABASE_URL = 'postgres://tollgate@localhost/tollgate'
  expect(() => readConfig({ DATABASE_URL, BACKUP_DIR: '/backups' })).toThrow('pg_dump')
  expect(() => readConfig({ DATABASE_URL, DATABASE_PATH: ':memory:' })).toThrow('journal')
  expect(() => readConfig({ DATABASE_URL: 'mysql://localhost/tollgate' })).toThrow('not shown')
})

test('the settings of a node in GUIDE.md are right, for the program and for a shell', () => {
  const guide = readFileSync('GUIDE.md', 'utf8')
  const [, file = ''] = /```ini\n(# \.env of [\s\S]*?)\n```/.exec(guide) ?? []
  const text = file.replace('SECRET_KEY=', `SECRET_KEY=${'A'.repeat(43)}`)
  const ofNode = parseEnv(text)
  expect(readConfig(ofNode)).toMatchObject({ databaseUrl: ofNode['DATABASE_URL'] })
  const shell = spawnSync('sh', ['-c', `set -a\n${text}\nprintf %s "$DATABASE_URL"`])
  expect(shell.stdout.toString()).toBe(ofNode['DATABASE_URL'])
  expect(ofNode['DATABASE_URL']).toContain('?sslmode=verify-full&sslrootcert=')
})
