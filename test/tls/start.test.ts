/** The program with encrypted listeners, as it is started, renewed and refused. */
import { spawn } from 'node:child_process'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { expect, test } from 'vitest'
import { startProgram } from '../process/program.ts'
import { Authority, loopbackNames, type Certificate } from '../support/certificates.ts'
import { settingsOfDatabase } from '../support/program-database.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { emitted } from '../support/waiting.ts'

const folder = temporaryFolder()
const authority = new Authority(folder)
const first = authority.sign('first', ...loopbackNames)
const second = authority.sign('second', ...loopbackNames)

const listen = ['udp', 'tcp', 'tls', 'ws', 'wss'].map((name) => `${name}/127.0.0.1:0`)
const everywhere = [...listen, 'tls/[::1]:0'].join(',')
const ready = new RegExp(
  `sip=${listen.map((place) => place.replace(/0$/, '\\d+')).join(',')},tls/\\[::1\\]:\\d+ `,
)

const portOf = (line: string, protocol: string): number =>
  Number(new RegExp(`[=,]${protocol}/127\\.0\\.0\\.1:(\\d+)`).exec(line)?.[1])

/** The name in the certificate that a listener shows. */
async function shownAt(port: number): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false })
  await emitted(socket, 'secureConnect')
  const { CN } = socket.getPeerCertificate().subject
  socket.destroy()
  return String(CN)
}

test('every kind of listener is served, with forward secrecy alone, and named when the program is ready', async () => {
  const program = startProgram(['serve'], {
    ...(await settingsOfDatabase(join(folder, 'all.db'))),
    SIP_LISTEN: everywhere,
    SIP_TLS_CERT: first.certFile,
    SIP_TLS_KEY: first.keyFile,
  })
  const line = await program.line(/^ready /)
  expect(line).toMatch(ready)
  const hasAgreed = async (port: number, ciphers: string): Promise<boolean> => {
    const options = ['-connect', `127.0.0.1:${port}`, '-tls1_2', '-cipher', ciphers]
    const client = spawn('openssl', ['s_client', ...options], { stdio: ['ignore', 'pipe', 'pipe'] })
    return Number((await emitted(client, 'exit'))[0]) === 0
  }
  for (const port of [portOf(line, 'tls'), portOf(line, 'wss')]) {
    expect(await shownAt(port)).toBe('first')
    for (const suite of ['AES128-SHA', 'AES256-SHA256', 'AES128-GCM-SHA256', 'AES256-GCM-SHA384'])
      expect([suite, await hasAgreed(port, suite)]).toEqual([suite, false])
    expect(await hasAgreed(port, 'kECDHE')).toBe(true)
  }
  const api = /api=(\S+)/.exec(line)?.[1]
  expect((await fetch(`http://${api}/readyz`)).status).toBe(200)
  program.child.kill('SIGTERM')
  expect(await program.ended).toBe(0)
})

test('SIGHUP reads the certificate again and ends nothing; a broken one is told and not taken', async () => {
  const files = { certFile: join(folder, 'live.pem'), keyFile: join(folder, 'live.key') }
  const install = ({ certFile, keyFile }: Certificate) => {
    copyFileSync(certFile, files.certFile)
    copyFileSync(keyFile, files.keyFile)
  }
  install(first)
  const program = startProgram(['serve'], {
    ...(await settingsOfDatabase(join(folder, 'renewed.db'))),
    SIP_LISTEN: 'tls/127.0.0.1:0',
    SIP_TLS_CERT: files.certFile,
    SIP_TLS_KEY: files.keyFile,
  })
  const port = portOf(await program.line(/^ready /), 'tls')
  const open = connect({ host: '127.0.0.1', port, rejectUnauthorized: false })
  await emitted(open, 'secureConnect')
  expect(await shownAt(port)).toBe('first')
  install(second)
  program.child.kill('SIGHUP')
  await expect.poll(() => shownAt(port)).toBe('second')
  writeFileSync(files.certFile, 'nonsense')
  program.child.kill('SIGHUP')
  const isTold = () => program.complaints.some((line) => line.includes('is not renewed'))
  await expect.poll(isTold).toBe(true)
  expect(await shownAt(port)).toBe('second')
  open.write('\r\n\r\n')
  expect(String((await emitted(open, 'data'))[0])).toBe('\r\n')
  program.child.kill('SIGTERM')
  expect(await program.ended).toBe(0)
})
