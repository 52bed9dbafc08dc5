/** Mail servers and HTTP receivers on loopback that keep what they get. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

export interface ReceivedMail {
  readonly from: string
  readonly to: readonly string[]
  readonly text: string
  readonly user: string | undefined
  readonly isSecure: boolean
}

/** @param port 0: any. */
export async function mailServer(options: SMTPServerOptions = {}, port = 0) {
  const mails: ReceivedMail[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    hideSTARTTLS: true,
    logger: false,
    onAuth: ({ username, password }, _, done) =>
      password === 'right' ? done(null, { user: username }) : done(new Error('wrong password')),
    onData: (stream, { envelope, user, secure }, done) => {
      let text = ''
      stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
      stream.on('end', () => {
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address
        const to = envelope.rcptTo.map(({ address }) => address)
        mails.push({ from, to, text, user: user as string | undefined, isSecure: secure })
        done()
      })
    },
    ...options,
  })
  server.on('error', () => undefined)
  const listening = server.listen(port, '127.0.0.1')
  await once(listening, 'listening')
  return {
    mails,
    port: (listening.address() as AddressInfo).port,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}

export interface ReceivedPost {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export async function httpReceiver(status: () => number = () => 200) {
  const posts: ReceivedPost[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      posts.push({ path: request.url ?? '', headers: request.headers, body })
      response.writeHead(status()).end('an answer')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    posts,
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.closeAllConnections()
      return new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}
