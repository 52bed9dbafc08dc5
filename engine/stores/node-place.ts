/** The name and the address of this process among those that share a database. */
import { isIP } from 'node:net'
import { type Config, WrongSetting } from '../config.ts'
import { formatHostAndPort, type HostAndPort, nodeName } from '../setting-kinds.ts'

/** @throws {WrongSetting} the host name cannot be a node's. */
export function nodeNameOf({ node }: Pick<Config, 'node'>, hostName: string): string {
  if (node.name !== undefined) return node.name
  if (nodeName.schema.safeParse(hostName).success) return hostName
  throw new WrongSetting(
    `NODE_NAME is not set, and the host name "${hostName}" cannot stand for it; allowed is ${nodeName.allowed}`,
  )
}

/** @param api where the API listens; a socket of all addresses is reached by the name of the host. */
export function nodeUrlOf(
  { node }: Pick<Config, 'node'>,
  { host, port }: HostAndPort,
  hostName: string,
): string {
  if (node.url !== undefined) return node.url
  const isAny = isIP(host) !== 0 && /^[0:.]+$/.test(host)
  return `http://${formatHostAndPort({ host: isAny ? hostName : host, port })}`
}

/**
 * Where other nodes send SIP requests for this one, and from where theirs come. Empty: nowhere.
 *
 * @param listeners with the address that they show, where they are bound to all of them.
 */
export function nodeSipUriOf(
  { node }: Pick<Config, 'node'>,
  listeners: readonly { readonly protocol: string; readonly host: string; readonly port: number }[],
): string {
  if (node.sipUri !== undefined) return node.sipUri
  const listener = listeners.find(({ protocol }) => !protocol.startsWith('ws'))
  if (listener === undefined) return ''
  const { protocol, ...place } = listener
  return `sip:${formatHostAndPort(place)}${protocol === 'udp' ? '' : `;transport=${protocol}`}`
}
