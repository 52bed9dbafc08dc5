/** The name and the address of this process among those that share a database. */
import { isIP } from 'node:net'
import { type Config, WrongSetting } from '../config.ts'
import { formatHostAndPort, type HostAndPort, instanceName } from '../setting-kinds.ts'

/** @throws {WrongSetting} the host name cannot be an instance's. */
export function instanceNameOf({ instance }: Pick<Config, 'instance'>, hostName: string): string {
  if (instance.name !== undefined) return instance.name
  if (instanceName.schema.safeParse(hostName).success) return hostName
  throw new WrongSetting(
    `NODE_NAME is not set, and the host name "${hostName}" cannot stand for it; ` +
      `allowed is ${instanceName.allowed}`,
  )
}

/**
 * @param api where the API listens; a socket of all addresses is reached by the name of the host.
 */
export function instanceUrlOf(
  { instance, apiTls }: Pick<Config, 'instance' | 'apiTls'>,
  { host, port }: HostAndPort,
  hostName: string,
): string {
  if (instance.url !== undefined) return instance.url
  const isAny = isIP(host) !== 0 && /^[0:.]+$/.test(host)
  const scheme = apiTls === undefined ? 'http' : 'https'
  return `${scheme}://${formatHostAndPort({ host: isAny ? hostName : host, port })}`
}

/**
 * The SIP URI to which other instances send requests for this one. Empty: they send none.
 *
 * @param listeners with the address that they show, where they are bound to all of them.
 */
export function instanceSipUriOf(
  { instance }: Pick<Config, 'instance'>,
  listeners: readonly { readonly protocol: string; readonly host: string; readonly port: number }[],
): string {
  if (instance.sipUri !== undefined) return instance.sipUri
  const listener = listeners.find(({ protocol }) => !protocol.startsWith('ws'))
  if (listener === undefined) return ''
  const { protocol, ...place } = listener
  return `sip:${formatHostAndPort(place)}${protocol === 'udp' ? '' : `;transport=${protocol}`}`
}

/** More interfaces are those of containers. */
const MAX_ADDRESSES = 32

/**
 * The addresses from which this instance sends SIP requests: a socket of all addresses sends from
 * any that the machine has.
 *
 * @param ofMachine those that others see.
 */
export function instanceSipAddressesOf(
  listeners: readonly { readonly protocol: string; readonly host: string }[],
  ofMachine: readonly string[],
): readonly string[] {
  const seen = ofMachine.filter((address) => !/^fe[89ab]/i.test(address))
  const addresses = listeners.flatMap(({ protocol, host }) => {
    if (protocol.startsWith('ws')) return []
    if (!/^[0:.]+$/.test(host)) return [host]
    return host.includes(':') ? seen : seen.filter((address) => isIP(address) === 4)
  })
  return [...new Set(addresses)].slice(0, MAX_ADDRESSES)
}

interface Listening {
  readonly protocol: string
  readonly host: string
  readonly port: number
}

/** Both, of a process that serves: its SIP URI, and from where its requests come. */
export const instanceSipPlaceOf = (
  { listeners, reachedAt }: Record<'listeners' | 'reachedAt', readonly Listening[]>,
  world: { readonly config: Pick<Config, 'instance'>; networkAddresses(): readonly string[] },
) =>
  [
    instanceSipUriOf(world.config, reachedAt),
    instanceSipAddressesOf(listeners, world.networkAddresses()),
  ] as const
