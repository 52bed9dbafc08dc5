/**
 * The charging server that the peer asks: a wallet in memory behind two paths, and the records of calls in
 * a flat file. Plain JavaScript and as little as the job allows, so that the peer's figure is not made worse by it.
 */
import { createWriteStream } from 'node:fs'
import { createServer } from 'node:http'

const [port = '0', file = '/dev/null'] = process.argv.slice(2)
const records = createWriteStream(file, { flags: 'a' })
const wallet = { balanceMicros: 1e15 }
const open = new Map()
const authorized = Buffer.from('{"authorized":true}')
const taken = Buffer.from('{}')

const server = createServer((request, response) => {
  const { url } = request
  const query = new URLSearchParams(url.slice(url.indexOf('?') + 1))
  const call = query.get('call')
  const isAuthorize = url.startsWith('/authorize')
  if (isAuthorize) {
    open.set(call, wallet.balanceMicros)
  } else {
    wallet.balanceMicros -= 1_000
    open.delete(call)
    records.write(`${query}\n`)
  }
  const body = isAuthorize ? authorized : taken
  response.writeHead(200, { 'Content-Length': body.length })
  response.end(body)
})
server.keepAliveTimeout = 60_000
server.on('connection', (socket) => socket.setNoDelay(true))
server.listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'))
