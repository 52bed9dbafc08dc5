/** Faults that a start waits for, and those that a person has to mend. */
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { TLSSocket, createSecureContext } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import {
  readServer,
  isServerUnavailable,
  whyServerUnavailable,
} from '../../../schema/postgres/open.ts'
import { Authority, loopbackNames } from '../../support/certificates.ts'
import { freePort } from '../../support/free-port.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const folder = temporaryFolder()
const authority = new Authority(folder)

async function failureAt(url: string): Promise<{ readonly text: string; readonly away: boolean }> {
  const error: unknown = await readServer(url, async () => 0).catch((thrown: unknown) => thrown)
  return { text: error instanceof Error ? error.message : '', away: isServerUnavailable(error) }
}

test('a server that is not reached is waited for', async () => {
  const url = `postgres://tollgate@127.0.0.1:${await freePort()}/tollgate`
  expect(await failureAt(url)).toMatchObject({ away: true })
  expect(await whyServerUnavailable(url)).toMatch(/^the database server does not answer: /)
})

test('a socket that is not there is that of a server which is down', async () => {
  const url = `postgres://tollgate@localhost/tollgate?host=${folder}`
  expect(await failureAt(url)).toMatchObject({ away: true })
})

test('a CA file that cannot be read is not waited for', async () => {
  const url = `postgres://tollgate@127.0.0.1:${await freePort()}/tollgate?sslmode=verify-full&sslrootcert=${folder}/none.crt`
  const { text, away } = await failureAt(url)
  expect(text).toContain('a file that DATABASE_URL names cannot be read: ENOENT')
  expect(away).toBe(false)
})

test('a certificate of an unknown CA is told as such', async () => {
  const server = await encryptingServer()
  const url = `postgres://tollgate@127.0.0.1:${server}/tollgate?sslmode=verify-full`
  expect((await failureAt(url)).text).toContain(
    'the certificate of the database server is not accepted (sslrootcert in DATABASE_URL names the file with its CA)',
  )
})

/** Agrees to TLS, as PostgreSQL does, and shows a certificate. Returns its port. */
async function encryptingServer(): Promise<number> {
  const { certFile, keyFile } = authority.sign('postgres', ...loopbackNames)
  const secureContext = createSecureContext({
    cert: readFileSync(certFile),
    key: readFileSync(keyFile),
  })
  const server: Server = createServer((socket) => {
    socket.on('error', () => undefined)
    // SSLRequest.
    socket.once('data', () => {
      socket.write('S')
      new TLSSocket(socket, { isServer: true, secureContext }).on('error', () => undefined)
    })
  })
  onTestFinished(() => void server.close())
  const port = await freePort()
  await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve))
  return port
}
