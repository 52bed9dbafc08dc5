import { type Environment, readConfig } from '../config.ts'
import { createLogger } from '../logger.ts'
import { formatHostAndPort, hostAndPort, type Kind, listenAddresses } from '../setting-kinds.ts'
import {
  CertificateError,
  createSipServer,
  isApplicationUri,
  ListenError,
  type SipServerOptions,
} from '../sip-server/index.ts'
import { type Command, type Input, type World, WrongUsage } from './command.ts'
import { flushed } from './serve.ts'

/** The embedded SIP server without call control, for drachtio applications of any kind. */
export const sipServer: Command = {
  name: 'sip-server',
  summary: 'Serves the drachtio protocol alone, for any drachtio application.',
  options: {
    listen: {
      value: 'udp/HOST:PORT,tls/HOST:PORT,…',
      meaning: 'where SIP is served: udp, tcp, tls, ws, wss',
      isRequired: true,
    },
    admin: { value: 'HOST:PORT', meaning: 'where applications connect', isRequired: true },
    'admin-tls': { value: 'HOST:PORT', meaning: 'the same by TLS' },
    'frame-length': {
      value: 'bytes|characters',
      meaning:
        'what lengths count for applications: characters on drachtio-srf before 5.0, else bytes',
    },
    handler: {
      value: 'URI',
      meaning: 'connect to this application for each request: tcp://host:port, tls://host:port',
    },
    metrics: { value: 'HOST:PORT', meaning: 'where Prometheus may ask for /metrics' },
    secret: { value: 'SECRET', meaning: 'what applications must present', isRequired: true },
    cert: { value: 'FILE', meaning: 'certificate for tls and wss (PEM); or SIP_TLS_CERT' },
    key: { value: 'FILE', meaning: 'its key (PEM); or SIP_TLS_KEY' },
    ca: { value: 'FILE', meaning: 'trusted CA certificates (PEM); or SIP_TLS_CA' },
  },
  details: () =>
    'The settings SIP_ADVERTISED_HOST, SIP_TLS_…, SIP_WS_ORIGINS, SIP_DNS_SERVERS and LOG_LEVEL hold here too: see tollgate serve --help.',
  run: async (input, world) => {
    const { logLevel, sip } = readConfig(environmentFor(input, world))
    const logger = createLogger(logLevel)
    const server = createSipServer({
      listen: sip.listen,
      webSocket: { origins: sip.webSocketOrigins },
      admin: readOption(input, 'admin', hostAndPort),
      adminTls: readOptional(input, 'admin-tls'),
      frameLength: frameLengthOf(input),
      metrics: readOptional(input, 'metrics'),
      secret: input.options['secret'] ?? '',
      ...routeTo(input),
      randomBytes: world.randomBytes,
      log: logger.log,
      ...(sip.advertisedHost === undefined ? {} : { advertisedHost: sip.advertisedHost }),
      ...(sip.dnsServers === undefined ? {} : { dnsServers: sip.dnsServers }),
      ...(sip.tls === undefined ? {} : { tls: sip.tls }),
    })
    const stopped = new Promise<void>((resolve) => world.onStopSignal(resolve))
    try {
      await server.start()
    } catch (error) {
      const isSetUpWrong = error instanceof ListenError || error instanceof CertificateError
      throw isSetUpWrong ? new WrongUsage(error.message) : error
    }
    world.onReloadSignal(() => server.reloadCertificates())
    world.print(`ready ${addressesOf(server)}`)
    await stopped
    await server.stop()
    await flushed(logger, world)
    return 0
  },
}

/** The options are settings of the same form, read and checked as those are. */
function environmentFor(input: Input, world: World): Environment {
  const { cert, key, ca } = input.options
  return {
    ...world.environment,
    SIP_LISTEN: listenText(input),
    ...(cert === undefined ? {} : { SIP_TLS_CERT: cert }),
    ...(key === undefined ? {} : { SIP_TLS_KEY: key }),
    ...(ca === undefined ? {} : { SIP_TLS_CA: ca }),
  }
}

/** A wrong one is reported as the option that it is. */
function listenText(input: Input): string {
  readOption(input, 'listen', listenAddresses)
  return input.options['listen'] ?? ''
}

const readOptional = (input: Input, name: string) =>
  input.options[name] === undefined ? undefined : readOption(input, name, hostAndPort)

/** Every request goes to the one application, which is connected to each time. */
function routeTo({ options: { handler: uri } }: Input): Pick<SipServerOptions, 'routeRequest'> {
  if (uri === undefined) return {}
  if (!isApplicationUri(uri))
    throw new WrongUsage(`--handler is "${uri}"; allowed is tcp://host:port or tls://host:port`)
  return { routeRequest: () => ({ uri }) }
}

function frameLengthOf({ options }: Input): SipServerOptions['frameLength'] {
  const counting = options['frame-length']
  if (counting === undefined || counting === 'bytes' || counting === 'characters') return counting
  throw new WrongUsage(`--frame-length is "${counting}"; allowed is bytes or characters`)
}

function readOption<T>(input: Input, name: string, kind: Kind<T>): T {
  const text = input.options[name] ?? ''
  const result = kind.schema.safeParse(text)
  if (result.success) return result.data
  throw new WrongUsage(`--${name} is "${text}"; allowed is ${kind.allowed}`)
}

function addressesOf(server: ReturnType<typeof createSipServer>): string {
  const sip = server.listeners.map(
    ({ protocol, address, port }) => `${protocol}/${formatHostAndPort({ host: address, port })}`,
  )
  const { adminAddress: admin, adminTlsAddress: adminTls, metricsAddress: metrics } = server
  const places = Object.entries({ admin, 'admin-tls': adminTls, metrics }).flatMap(
    ([name, place]) => (place === undefined ? [] : [`${name}=${formatHostAndPort(place)}`]),
  )
  return [`sip=${sip.join(',')}`, ...places].join(' ')
}
