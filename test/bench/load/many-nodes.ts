/**
 * Nodes that ring and answer at once, and answer OPTIONS, each at a port of its own, all in one
 * process: SIPp has a process for every port. Started with the number of nodes, it says their
 * ports.
 */
import { fork } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'

export interface ManyNodes {
  readonly ports: readonly number[]
  readonly stop: () => void
}

export async function startNodes(count: number): Promise<ManyNodes> {
  const child = fork(import.meta.filename, [String(count)], { execArgv: process.execArgv })
  // The other side, below, sends its ports.
  const [ports] = (await once(child, 'message')) as [number[]]
  return { ports, stop: () => child.disconnect() }
}

const sdp =
  'v=0\r\no=node 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n'

/** The headers that a response repeats; all Vias, because there is only one hop. */
const repeated = /^(?:Via|v|From|f|Call-ID|i|CSeq): *.*\r\n/gim

function responses(request: string, port: number): readonly string[] {
  const headers = (request.match(repeated) ?? []).join('')
  const to = /^(?:To|t): *(.*)\r$/im.exec(request)?.[1] ?? ''
  const toTag = to.includes(';tag=') ? '' : ';tag=node'
  const head = `${headers}To: ${to}${toTag}\r\nContact: <sip:node@127.0.0.1:${port}>\r\n`
  const empty = `${head}Content-Length: 0\r\n\r\n`
  if (request.startsWith('ACK ')) return []
  if (!request.startsWith('INVITE ')) return [`SIP/2.0 200 OK\r\n${empty}`]
  return [
    `SIP/2.0 180 Ringing\r\n${empty}`,
    `SIP/2.0 200 OK\r\n${head}Content-Type: application/sdp\r\nContent-Length: ${sdp.length}\r\n\r\n${sdp}`,
  ]
}

async function openNode(): Promise<number> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 1024 * 1024 })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const { port } = socket.address()
  socket.on('message', (bytes, from) => {
    for (const response of responses(bytes.toString('latin1'), port))
      socket.send(response, from.port, from.address)
  })
  return port
}

if (process.send !== undefined && process.argv[1] === import.meta.filename) {
  const ports: number[] = []
  for (let left = Number(process.argv[2]); left > 0; left -= 1) ports.push(await openNode())
  process.send(ports)
  process.on('disconnect', () => process.exit())
}
