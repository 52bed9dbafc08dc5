/** A Redis server or sentinel that knows a few commands, in version 2 of its protocol; it counts what it is asked. */
import { createServer, type AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'
import { emitted } from './waiting.ts'

type Reply = string | Error | readonly Reply[]

function encoded(reply: Reply): string {
  if (reply instanceof Error) return `-ERR ${reply.message}\r\n`
  if (typeof reply === 'string') return `$${Buffer.byteLength(reply)}\r\n${reply}\r\n`
  return `*${reply.length}\r\n${reply.map(encoded).join('')}`
}

/** Takes whole commands out of what has come: `*2\r\n$3\r\nGET\r\n$1\r\na\r\n`. */
function commandsIn(text: string): { readonly commands: string[][]; readonly rest: string } {
  const commands: string[][] = []
  const parts = text.split('\r\n')
  let at = 0
  while (/^\*\d+$/.test(parts[at] ?? '')) {
    const end = at + 1 + 2 * Number(parts[at]?.slice(1))
    if (parts.length <= end) break
    commands.push(parts.slice(at + 1, end).filter((_part, index) => index % 2 === 1))
    at = end
  }
  return { commands, rest: parts.slice(at).join('\r\n') }
}

export async function fakeRedis(answer: (words: readonly string[]) => Reply) {
  const asked: string[] = []
  const server = createServer((socket) => {
    let waiting = ''
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      const { commands, rest } = commandsIn(waiting + bytes.toString())
      waiting = rest
      for (const words of commands) {
        const [name = ''] = words
        if (name === 'HELLO') {
          if (words.includes('AUTH')) asked.push(words.slice(words.indexOf('AUTH')).join(' '))
          socket.write(encoded(['server', 'redis', 'version', '7.0.0']))
        } else if (name === 'CLIENT') socket.write(encoded('OK'))
        else {
          asked.push(words.join(' '))
          socket.write(encoded(answer(words)))
        }
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await emitted(server, 'listening')
  onTestFinished(() => void server.close())
  return { port: (server.address() as AddressInfo).port, asked }
}
