import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { expectPaid, paying, seedFor } from '../sipp/call-case.ts'
import { Authority, loopbackNames } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'
import { callWith, SippNode } from '../support/sipp.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, patientInstances } from '../support/waiting.ts'
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
    ...patientInstances,
    DRACHTIO_URL: url,
  })
  onTestFinished(() => tollgate.stop())

  const judged = await callWith('inbound/answered.xml', sip, { keys: { caller: paying } })
  expect(judged).toEqual({ exitCode: 0, errors: '' })
  expectPaid((await tollgate.waitForCalls(1))[0], 1)
  const told = await figures()
  for (const name of ['answer_seconds_in', 'pdd_seconds_out'])
    expect(told).toContain(`drachtio_call_${name}_count 1\n`)
  server.child.kill('SIGTERM')
  expect(await server.ended).toBe(0)
})

test('of two servers one may die: calls go on by the other', async () => {
  const servers = [await startServer(), await startServer()] as const
  const node = await SippNode.start('nodes/answers.xml')
  onTestFinished(async () => void (await node.stop()))
  const tollgate = await TollgateProcess.start(seedFor([node.port]), {
    ...patientInstances,
    DRACHTIO_URL: servers.map(({ url }) => url).join(','),
  })
  onTestFinished(() => tollgate.stop())
  const call = (sip: number) => callWith('inbound/answered.xml', sip, { keys: { caller: paying } })
  const [first, second] = servers
  expect(await call(first.sip)).toEqual({ exitCode: 0, errors: '' })
  first.server.child.kill('SIGKILL')
  await first.server.ended
  expect(await call(second.sip)).toEqual({ exitCode: 0, errors: '' })
  expect(await tollgate.waitForCalls(2)).toMatchObject([
    { disposition: 'ANSWERED' },
    { disposition: 'ANSWERED' },
  ])
})

test('a second Tollgate with a database of its own does not start on a server that has one already', async () => {
  const { sip, url } = await startServer()
  const node = await SippNode.start('nodes/answers.xml')
  onTestFinished(async () => void (await node.stop()))
  const tollgate = await TollgateProcess.start(seedFor([node.port]), {
    ...patientInstances,
    DRACHTIO_URL: url,
  })
  onTestFinished(() => tollgate.stop())
  const second = TollgateProcess.start(seedFor([node.port]), {
    ...patientInstances,
    DRACHTIO_URL: url,
  })
  await expect(second).rejects.toThrow(
    /another application takes calls at 127\.0\.0\.1:\d+ of DRACHTIO_URL/,
  )
  // The first one goes on, and no call went elsewhere.
  expect(await callWith('inbound/answered.xml', sip, { keys: { caller: paying } })).toEqual({
    exitCode: 0,
    errors: '',
  })
  expect(await tollgate.waitForCalls(1)).toMatchObject([{ disposition: 'ANSWERED' }])
  await expect
    .poll(() => tollgate.log.join())
    .toContain('another application has registered for calls')
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
