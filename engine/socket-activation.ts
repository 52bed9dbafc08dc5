/**
 * Sockets that the service manager has bound and passes to the process: systemd's socket
 * activation, sd_listen_fds(3). They stay bound while the process restarts, so what arrives
 * meanwhile waits in them. Linux only: which socket a descriptor is stands in /proc.
 */
import { readFileSync, readlinkSync } from 'node:fs'
import { type Config, type Environment, WrongSetting } from './config.ts'
import { formatHostAndPort, type HostAndPort } from './setting-kinds.ts'

export interface PassedSocket {
  readonly descriptor: number
  readonly protocol: 'udp' | 'tcp'
  readonly host: string
  readonly port: number
}

/** SD_LISTEN_FDS_START */
const FIRST_DESCRIPTOR = 3

/**
 * None unless `LISTEN_PID` names this process. @throws {WrongSetting} a descriptor is no UDP or TCP
 * socket.
 */
export function readPassedSockets(environment: Environment, pid: number): readonly PassedSocket[] {
  const { LISTEN_PID, LISTEN_FDS } = environment
  if (LISTEN_PID !== String(pid)) return []
  const sockets = readSocketTables()
  return Array.from({ length: Number(LISTEN_FDS) }, (_, index) => {
    const descriptor = FIRST_DESCRIPTOR + index
    const [, inode = ''] =
      /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${descriptor}`)) ?? []
    const socket = sockets.get(inode)
    if (socket === undefined)
      throw new WrongSetting(`LISTEN_FDS: descriptor ${descriptor} is no UDP or TCP socket`)
    return { descriptor, ...socket }
  })
}

/** Sockets that are bound in this network namespace, by inode. */
function readSocketTables(): Map<string, Omit<PassedSocket, 'descriptor'>> {
  const sockets = new Map<string, Omit<PassedSocket, 'descriptor'>>()
  for (const table of ['udp', 'udp6', 'tcp', 'tcp6']) {
    const [, ...lines] = readTable(`/proc/net/${table}`).trimEnd().split('\n')
    for (const line of lines) {
      const columns = line.trim().split(/\s+/)
      const [address = '', port = ''] = columns[1]?.split(':') ?? []
      const protocol = table.startsWith('udp') ? 'udp' : 'tcp'
      sockets.set(columns[9] ?? '', { protocol, host: readHost(address), port: parseInt(port, 16) })
    }
  }
  return sockets
}

/** A kernel without IPv6 has no tables of it. */
function readTable(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Words of 32 bits in the byte order of the machine, in hexadecimal digits. */
function readHost(digits: string): string {
  const words = new Uint32Array((digits.match(/.{8}/g) ?? []).map((word) => parseInt(word, 16)))
  const bytes = Buffer.from(words.buffer)
  if (bytes.length === 4) return bytes.join('.')
  const groups = bytes.toString('hex').match(/.{4}/g) ?? []
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}

/**
 * The settings, with the sockets that are passed in the place of those that they would bind.
 * @throws {WrongSetting} a socket is passed that the settings do not name.
 */
export function withPassedSockets(config: Config, sockets: readonly PassedSocket[]): Config {
  const left = new Set(sockets)
  const pass = <P extends HostAndPort>(place: P, protocol: 'udp' | 'tcp'): P => {
    for (const socket of left) {
      const isPlace = socket.host === place.host && socket.port === place.port
      if (!isPlace || socket.protocol !== protocol) continue
      left.delete(socket)
      return { ...place, descriptor: socket.descriptor }
    }
    return place
  }
  const { sip, apiListen, edgeListen } = config
  const passed = {
    ...config,
    sip: {
      ...sip,
      listen: sip.listen.map((place) => pass(place, place.protocol === 'udp' ? 'udp' : 'tcp')),
    },
    apiListen: pass(apiListen, 'tcp'),
    edgeListen: pass(edgeListen, 'tcp'),
  }
  for (const { protocol, ...place } of left)
    throw new WrongSetting(
      `LISTEN_FDS: the socket ${protocol} ${formatHostAndPort(place)} is none of SIP_LISTEN, API_LISTEN, EDGE_LISTEN`,
    )
  return passed
}
