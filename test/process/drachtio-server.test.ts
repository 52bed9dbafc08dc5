import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { expectPaid, paying, seedFor } from '../sipp/call-case.ts'
import { Authority, loopbackNames } from '../support/certificates.ts'
import { DigestPhone } from '../support/digest-phone.ts'
import { freePort } from '../support/free-port.ts'
import { callWith, SippNode } from '../support/sipp.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, patientNodes } from '../support/waiting.ts'
import { startProgram } from './program.ts'

/** A SIP server of its own process: its port, and how Tollgate reaches it. */
async function startServer() {
  const [sip, admin] = [await freePort(), await freePort()]
  const server = startProgram([
    'sip-server',
    '--listen',
    `udp/127.0.0.1:${sip},tcp/127.0.0.1:${sip}`,
    '--admin',
    `127.0.0.1:${admin}`,
    '--secret',
    'cymru',
  ])
  expect(await server.line(/^ready /)).toBe(
    `ready sip=udp/127.0.0.1:${sip},tcp/127.0.0.1:${sip} admin=127.0.0.1:${admin}`,
  )
  return { server, sip, url: `drachtio://:cymru@127.0.0.1:${admin}` }
}

/** The same for applications that come by TLS. */
async function startTlsServer() {
  const [sip, admin, metrics] = [await freePort(), await freePort(), await freePort()]
  const authority = new Authority(temporaryFolder())
  const { certFile, keyFile } = authority.sign('server', ...loopbackNames)
  const server = startProgram([
    'sip-server',
    '--listen',
    `udp/127.0.0.1:${sip}`,
    '--secret',
    'cymru',
    '--admin',
    '127.0.0.1:0',
    '--admin-tls',
    `127.0.0.1:${admin}`,
    '--metrics',
    `127.0.0.1:${metrics}`,
    '--cert',
    certFile,
    '--key',
    keyFile,
  ])
  await server.line(/^ready /)
  const url = `drachtios://:cymru@127.0.0.1:${admin}?ca=${authority.file}`
  const figures = async () => (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text()
  return { server, sip, url, figures }
}

test('with DRACHTIO_URL a billed call runs on a SIP server in another process, reached by TLS', async () => {
  const { server, sip, url, figures } = await startTlsServer()
  const node = await SippNode.start('nodes/answers.xml')
  onTestFinished(async () => void (await node.stop()))
  const tollgate = await TollgateProcess.start(seedFor([node.port]), {
    ...patientNodes,
    DRACHTIO_URL: url,
  })
  onTestFinished(() => tollgate.stop())

  const judged = await callWith('inbound/answered.xml', sip, { keys: { caller: paying } })
  expect(judged).toEqual({ exitCode: 0, errors: '' })
  expectPaid((await tollgate.waitForCalls(1))[0], 1)
  const told = await figures()
  for (const name of [
    'answer_seconds_in',
    'answer_seconds_out',
    'pdd_seconds_in',
    'pdd_seconds_out',
  ])
    expect(told).toContain(`drachtio_call_${name}_count 1\n`)
  server.child.kill('SIGTERM')
  expect(await server.ended).toBe(0)
})

test('with DRACHTIO_URL the guard works on requests: guessers, scanners and the banned get 403', async () => {
  const { sip, url } = await startServer()
  const domain = 'acme.example'
  const tollgate = await TollgateProcess.start(
    {
      tenants: [{ slug: 'acme', domains: [domain] }],
      extensions: [
        { tenant: 'acme', extension: '101', password: 'secret-101', display_name: 'Ann' },
      ],
    },
    { DRACHTIO_URL: url, TRUSTED_SOURCES: '192.0.2.0/24' },
  )
  onTestFinished(() => tollgate.stop())
  const place = { address: '127.0.0.1', port: sip }
  const phone = await DigestPhone.open(
    { protocol: 'udp', ...place, advertisedHost: '127.0.0.1', advertisedPort: sip },
    { user: '101', domain, password: 'guess' },
  )
  onTestFinished(() => phone.close())

  expect((await phone.register(['User-Agent: friendly-scanner'])).status).toBe(403)
  const answers: number[] = []
  for (let guess = 0; guess < 22; guess++) {
    const challenge = await phone.register()
    answers.push(challenge.status)
    if (challenge.status !== 401) break
    phone.learn(challenge)
    answers.push((await phone.signOn()).status)
  }
  expect(new Set(answers.slice(0, -1))).toEqual(new Set([401]))
  expect(answers.at(-1)).toBe(403)
  await eventually(() => expect(tollgate.log.join()).toContain('password_guessing'))
  const leg = phone.peer.leg(`sip:102@${domain}`)
  phone.invite(leg)
  expect((await phone.answerTo(leg)).status).toBe(403)
  // Rejected before authorization: there is no call.
  expect(tollgate.calls()).toEqual([])
})

test('of two servers one may die: calls go on by the other', async () => {
  const ports = [await freePort(), await freePort(), await freePort(), await freePort()] as const
  const [sipA, adminA, sipB, adminB] = ports
  const servers = [
    [sipA, adminA],
    [sipB, adminB],
  ].map(([sip, admin]) =>
    startProgram([
      'sip-server',
      '--listen',
      `udp/127.0.0.1:${sip}`,
      '--admin',
      `127.0.0.1:${admin}`,
      '--secret',
      'cymru',
    ]),
  )
  for (const server of servers) await server.line(/^ready /)
  const node = await SippNode.start('nodes/answers.xml')
  onTestFinished(async () => void (await node.stop()))
  const tollgate = await TollgateProcess.start(seedFor([node.port]), {
    ...patientNodes,
    DRACHTIO_URL: [adminA, adminB].map((port) => `drachtio://:cymru@127.0.0.1:${port}`).join(','),
  })
  onTestFinished(() => tollgate.stop())
  const call = (sip: number) => callWith('inbound/answered.xml', sip, { keys: { caller: paying } })
  expect(await call(sipA)).toEqual({ exitCode: 0, errors: '' })
  servers[0]?.child.kill('SIGKILL')
  await servers[0]?.ended
  expect(await call(sipB)).toEqual({ exitCode: 0, errors: '' })
  expect(await call(sipB)).toEqual({ exitCode: 0, errors: '' })
  expect(await tollgate.waitForCalls(3)).toMatchObject([
    { disposition: 'ANSWERED' },
    { disposition: 'ANSWERED' },
    { disposition: 'ANSWERED' },
  ])
})

test('a second Tollgate with a database of its own does not start on a server that has one already', async () => {
  const { sip, url } = await startServer()
  const node = await SippNode.start('nodes/answers.xml')
  onTestFinished(async () => void (await node.stop()))
  const tollgate = await TollgateProcess.start(seedFor([node.port]), {
    ...patientNodes,
    DRACHTIO_URL: url,
  })
  onTestFinished(() => tollgate.stop())
  const second = TollgateProcess.start(seedFor([node.port]), { ...patientNodes, DRACHTIO_URL: url })
  await expect(second).rejects.toThrow(
    /another application takes calls at 127\.0\.0\.1:\d+ of DRACHTIO_URL/,
  )
  // The first one goes on, and no call went elsewhere.
  for (let call = 0; call < 3; call++)
    expect(await callWith('inbound/answered.xml', sip, { keys: { caller: paying } })).toEqual({
      exitCode: 0,
      errors: '',
    })
  const records = await tollgate.waitForCalls(3)
  expect(records.map(({ disposition }) => disposition)).toEqual(Array(3).fill('ANSWERED'))
  await expect
    .poll(() => tollgate.log.join())
    .toContain('another application has registered for calls')
})

test('the SIP server alone tells Prometheus of itself, and connects to an application by itself', async () => {
  const [sip, admin, metrics] = [await freePort(), await freePort(), await freePort()]
  const server = startProgram([
    'sip-server',
    '--listen',
    `udp/127.0.0.1:${sip}`,
    '--admin',
    `127.0.0.1:${admin}`,
    '--metrics',
    `127.0.0.1:${metrics}`,
    '--handler',
    'tcp://127.0.0.1:1',
    '--secret',
    'cymru',
  ])
  expect(await server.line(/^ready /)).toBe(
    `ready sip=udp/127.0.0.1:${sip} admin=127.0.0.1:${admin} metrics=127.0.0.1:${metrics}`,
  )
  const peer = createSocket('udp4')
  onTestFinished(() => void peer.close())
  peer.send(
    [
      'OPTIONS sip:a@127.0.0.1 SIP/2.0',
      'Via: SIP/2.0/UDP 127.0.0.1;rport;branch=z9hG4bK1',
      'Max-Forwards: 70',
      'From: <sip:b@127.0.0.1>;tag=1',
      'To: <sip:a@127.0.0.1>',
      'Call-ID: 1',
      'CSeq: 1 OPTIONS',
      'Content-Length: 0',
      '\r\n',
    ].join('\r\n'),
    sip,
    '127.0.0.1',
  )
  const [answer] = (await once(peer, 'message')) as [Buffer]
  expect(answer.toString()).toMatch(/^SIP\/2\.0 480 /)
  const told = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text()
  expect(told).toContain('drachtio_sip_requests_in_total{method="OPTIONS"} 1\n')
})

test('SIGHUP reads the file of drachtio-server again', async () => {
  const file = join(temporaryFolder(), 'drachtio.conf.xml')
  const [sip, admin] = [await freePort(), await freePort()]
  const write = (level: string, timers = ''): void =>
    writeFileSync(
      file,
      `<drachtio><admin port="${admin}" secret="cymru">127.0.0.1</admin>
      <sip><contacts><contact>sip:127.0.0.1:${sip};transport=udp</contact></contacts>${timers}</sip>
      <logging><loglevel>${level}</loglevel></logging></drachtio>`,
    )
  write('error')
  const server = startProgram(['sip-server', '-f', file])
  await server.line(/^ready /)
  write('info', '<timers><t1>400</t1></timers>')
  server.child.kill('SIGHUP')
  const said = () => server.complaints.join()
  await eventually(() => expect(said()).toContain('was read again'))
  await eventually(() => expect(said()).toContain('<sip/timers/t1> has changed'))
  server.child.kill('SIGTERM')
  expect(await server.ended).toBe(0)
})
