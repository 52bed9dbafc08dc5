/**
 * The charging server that the peer asks: a wallet in memory behind two paths, and a flat file of
 * records. As little as the job allows, so that the peer's figure is not made worse by it.
 */
import { createWriteStream } from 'node:fs'
import { createServer } from 'node:http'

const [port = '0', file = '/dev/null'] = process.argv.slice(2)
const records = createWriteStream(file, { flags: 'a' })
const wallet = { balanceMicros: 1e15 }
const open = new Map<string, number>()

createServer((request, response) => {
  const url = request.url ?? ''
  const query = new URLSearchParams(url.slice(url.indexOf('?') + 1))
  const call = query.get('call') ?? ''
  if (url.startsWith('/authorize')) {
    open.set(call, wallet.balanceMicros)
    response.end('{"authorized":true}')
    return
  }
  wallet.balanceMicros -= 1_000
  open.delete(call)
  records.write(`${url}\n`)
  response.end('{}')
}).listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'))
