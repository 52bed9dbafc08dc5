import { readConfig } from '../config.ts'
import { createLogger } from '../logger.ts'
import { formatHostAndPort, hostAndPort, type Kind, listenAddresses } from '../setting-kinds.ts'
import { createSipServer, ListenError } from '../sip-server/index.ts'
import { type Command, type Input, WrongUsage } from './command.ts'
import { flushed } from './serve.ts'

/** The embedded SIP server without call control, for drachtio applications of any kind. */
export const sipServer: Command = {
  name: 'sip-server',
  summary: 'Serves the drachtio protocol alone, for any drachtio application.',
  options: {
    listen: {
      value: 'udp/HOST:PORT,tcp/HOST:PORT',
      meaning: 'where SIP is served',
      isRequired: true,
    },
    admin: { value: 'HOST:PORT', meaning: 'where applications connect', isRequired: true },
    secret: { value: 'SECRET', meaning: 'what applications must present', isRequired: true },
  },
  run: async (input, world) => {
    const { logLevel, sip } = readConfig(world.environment)
    const logger = createLogger(logLevel)
    const server = createSipServer({
      listen: readListen(input),
      admin: readOption(input, 'admin', hostAndPort),
      secret: input.options['secret'] ?? '',
      randomBytes: world.randomBytes,
      log: logger.log,
      ...(sip.advertisedHost === undefined ? {} : { advertisedHost: sip.advertisedHost }),
    })
    const stopped = new Promise<void>((resolve) => world.onStopSignal(resolve))
    try {
      await server.start()
    } catch (error) {
      throw error instanceof ListenError ? new WrongUsage(error.message) : error
    }
    world.print(`ready ${addressesOf(server)}`)
    await stopped
    await server.stop()
    await flushed(logger, world)
    return 0
  },
}

function readListen(input: Input) {
  return readOption(input, 'listen', listenAddresses).map(({ protocol, host, port }) => {
    if (protocol === 'udp' || protocol === 'tcp') return { protocol, host, port }
    throw new WrongUsage(`--listen has ${protocol}; allowed in this version is udp or tcp`)
  })
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
  const admin = server.adminAddress
  return `sip=${sip.join(',')} admin=${admin === undefined ? '' : formatHostAndPort(admin)}`
}
