import { expect, onTestFinished, test } from 'vitest'
import { paying, seedFor } from '../sipp/call-case.ts'
import { freePort } from '../support/free-port.ts'
import { callWith, SippNode } from '../support/sipp.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { startProgram } from './program.ts'

test('with DRACHTIO_URL a billed call runs on a SIP server in another process', async () => {
  const [sip, admin] = [await freePort(), await freePort()]
  const server = startProgram([
    ...['sip-server', '--listen', `udp/127.0.0.1:${sip},tcp/127.0.0.1:${sip}`],
    ...['--admin', `127.0.0.1:${admin}`, '--secret', 'cymru'],
  ])
  expect(await server.line(/^ready /)).toBe(
    `ready sip=udp/127.0.0.1:${sip},tcp/127.0.0.1:${sip} admin=127.0.0.1:${admin}`,
  )
  const node = await SippNode.start('nodes/answers.xml')
  onTestFinished(async () => void (await node.stop()))
  const tollgate = await TollgateProcess.start(seedFor([node.port]), {
    DRACHTIO_URL: `drachtio://:cymru@127.0.0.1:${admin}`,
  })
  onTestFinished(() => tollgate.stop())

  const judged = await callWith('inbound/answered.xml', sip, { keys: { caller: paying } })
  expect(judged).toEqual({ exitCode: 0, errors: '' })
  expect(await tollgate.waitForCalls(1)).toMatchObject([{ disposition: 'ANSWERED', billsec: 1 }])
  server.child.kill('SIGTERM')
  expect(await server.ended).toBe(0)
})
