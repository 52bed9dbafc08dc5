/**
 * The API and the customer edge by HTTPS: served, renewed, reported, and refused when it cannot be.
 */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { expect, test } from 'vitest'
import { startProgram } from '../process/program.ts'
import { Authority, loopbackNames } from '../support/certificates.ts'
import { settingsOfDatabase } from '../support/program-database.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { emitted, eventually } from '../support/waiting.ts'

const folder = temporaryFolder()
const authority = new Authority(folder)
const first = authority.sign('first-http', ...loopbackNames)
const second = authority.sign('second-http', ...loopbackNames)
const agent = new Agent({ ca: readFileSync(authority.file) })

interface Answered {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Asks by https, with the certificate checked. */
async function ask(
  place: string,
  path: string,
  { method = 'GET', headers = {}, body = '' } = {},
): Promise<Answered> {
  const sent = request(`https://${place}${path}`, { agent, method, headers })
  sent.end(body)
  const [answer] = (await emitted(sent, 'response')) as [IncomingMessage]
  return { status: answer.statusCode, headers: answer.headers, body: await text(answer) }
}

/** The name in the certificate that a new connection is shown. */
async function shownAt(place: string): Promise<string> {
  const [host = '', port = ''] = place.split(':')
  const socket = connect({ host, port: Number(port), rejectUnauthorized: false })
  await emitted(socket, 'secureConnect')
  const { CN } = socket.getPeerCertificate().subject
  socket.destroy()
  return String(CN)
}

test('the API and the edge speak HTTPS alone, tell browsers to stay with it, take a renewed certificate, and report when it expires', async () => {
  const own = { certFile: join(folder, 'api.pem'), keyFile: join(folder, 'api.key') }
  const put = (from: typeof first): void => {
    copyFileSync(from.keyFile, own.keyFile)
    copyFileSync(from.certFile, own.certFile)
  }
  put(first)
  const program = startProgram(['serve'], {
    ...(await settingsOfDatabase(join(folder, 'https.db'))),
    API_TLS_CERT: own.certFile,
    API_TLS_KEY: own.keyFile,
    EDGE_TLS_CERT: first.certFile,
    EDGE_TLS_KEY: first.keyFile,
    ADMIN_PASSWORD: 'correct horse',
  })
  const line = await program.line(/^ready /)
  const [, api = '', edge = '', consoleUrl] = /api=(\S+) edge=(\S+) console=(\S+)/.exec(line) ?? []
  expect(consoleUrl).toBe(`https://${api}/`)
  for (const [place, path] of [
    [api, '/readyz'],
    [edge, '/health'],
    [api, '/console'],
    [edge, '/api/v1/customers'],
  ] as const) {
    const { headers } = await ask(place, path)
    expect([path, headers['strict-transport-security']]).toEqual([path, 'max-age=31536000'])
  }
  await expect(fetch(`http://${api}/readyz`)).rejects.toThrow('fetch failed')
  await expect(fetch(`http://${edge}/health`)).rejects.toThrow('fetch failed')

  const credentials = JSON.stringify({ username: 'admin', password: 'correct horse' })
  const json = { 'Content-Type': 'application/json', Origin: `https://${api}` }
  const post = { method: 'POST', headers: json, body: credentials }
  const signedIn = await ask(api, '/api/v1/auth/session', post)
  expect(signedIn.headers['set-cookie']?.[0]).toMatch(/^__Host-tollgate_session=.*; Secure/)
  const { body } = await ask(api, '/api/v1/auth/login', post)
  const { data } = JSON.parse(body) as { readonly data: { readonly token: string } }
  const headers = { Authorization: `Bearer ${data.token}` }
  const metrics = await ask(api, '/metrics', { headers })
  const expiries = [
    ...metrics.body.matchAll(/tollgate_certificate_not_after_seconds\{use="(\w+)"\} (\d+)/g),
  ].map(([, use, at]) => [use, Math.round((Number(at) * 1_000 - Date.now()) / 86_400_000)])
  expect(expiries).toEqual([
    ['api', 2],
    ['edge', 2],
  ])
  const anomalies = await ask(api, '/api/v1/anomalies?kinds=certificate', { headers })
  expect(JSON.parse(anomalies.body)).toMatchObject({
    data: {
      findings: [
        { kind: 'certificate', severity: 'high', subject: 'certificate api' },
        { kind: 'certificate', severity: 'high', subject: 'certificate edge' },
      ],
    },
  })

  expect(await shownAt(api)).toBe('first-http')
  put(second)
  program.child.kill('SIGHUP')
  await eventually(async () => expect(await shownAt(api)).toBe('second-http'))
  expect(await shownAt(edge)).toBe('first-http')
  expect((await ask(api, '/readyz')).status).toBe(200)
  program.child.kill('SIGTERM')
  expect(await program.ended).toBe(0)
})

test('plain HTTP on an address that others reach is a warning at the start; on loopback, and with a certificate, it is none', async () => {
  const warned = async (environment: Record<string, string>): Promise<string[]> => {
    const program = startProgram(['serve'], {
      ...(await settingsOfDatabase(join(folder, `warned-${Object.keys(environment).length}.db`))),
      LOG_LEVEL: 'warn',
      ...environment,
    })
    await program.line(/^ready /)
    program.child.kill('SIGTERM')
    await program.ended
    return program.complaints.flatMap(
      (each) => /((?:API|EDGE)_LISTEN) is \S+ which serves plain HTTP/.exec(each)?.[1] ?? [],
    )
  }
  const everywhere = { API_LISTEN: '0.0.0.0:0', EDGE_LISTEN: '[::]:0' }
  expect(await warned({})).toEqual([])
  expect(await warned(everywhere)).toEqual(['API_LISTEN', 'EDGE_LISTEN'])
  const { certFile, keyFile } = first
  expect(await warned({ ...everywhere, API_TLS_CERT: certFile, API_TLS_KEY: keyFile })).toEqual([
    'EDGE_LISTEN',
  ])
})

test('a certificate that cannot be used is refused at the start, in one line that names the setting', async () => {
  const { certFile, keyFile } = first
  const noPem = join(folder, 'no.pem')
  writeFileSync(noPem, 'no certificate')
  for (const [environment, told] of [
    [{ API_TLS_CERT: certFile }, /API_TLS_CERT is .*; API_TLS_KEY must be set with it/],
    [{ EDGE_TLS_KEY: keyFile }, /EDGE_TLS_KEY is .*; EDGE_TLS_CERT must be set with it/],
    [{ API_TLS_CERT: noPem, API_TLS_KEY: keyFile }, /API_TLS_CERT: cannot use .*no\.pem for TLS/],
    [
      { EDGE_TLS_CERT: certFile, EDGE_TLS_KEY: join(folder, 'absent.key') },
      /EDGE_TLS_KEY: cannot use .*absent\.key for TLS: there is no such file/,
    ],
    [{ API_TLS_CERT: certFile, API_TLS_KEY: second.keyFile }, /API_TLS_KEY: cannot use /],
  ] as const) {
    const program = startProgram(['serve'], {
      ...(await settingsOfDatabase(join(folder, 'refused.db'))),
      ...environment,
    })
    expect(await program.ended).toBe(2)
    expect(program.printed).toEqual([])
    expect(program.complaints.join('\n')).toMatch(told)
  }
})
