/** `node:http` alone, with the answer that the API gives: what this machine can do at all. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { answerQuestions } from './questions.ts'

const body = JSON.stringify({
  success: true,
  data: { status: 'ok', service: 'tollgate', version: 'bench' },
})
const headers = { 'Content-Type': 'application/json', 'Content-Length': body.length }

const server = createServer((_, response) => void response.writeHead(200, headers).end(body))
// Its connections rest while the other server is measured.
server.keepAliveTimeout = 600_000
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  process.stdout.write(`${JSON.stringify({ port, tokens: Array<string>(64).fill('none') })}\n`)
})
answerQuestions(() => {
  server.close()
  server.closeAllConnections()
})
