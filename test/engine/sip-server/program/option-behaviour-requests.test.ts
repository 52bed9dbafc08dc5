/**
 * The options of applications, handlers, blacklists and timers from outside, as those of
 * option-behaviour.test.ts.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect, createServer as createTcpServer, type AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { datagramSink } from '../../../support/datagram-sink.ts'
import { freePort } from '../../../support/free-port.ts'
import { sdp, SipPeer } from '../../../support/sip-peer.ts'
import {
  application,
  ask,
  base,
  contact,
  start,
  startWith,
} from '../../../support/sip-server-options.ts'
import { SipServerProgram } from '../../../support/sip-server-program.ts'
import { responseTo } from '../../../support/srf.ts'
import { closed, emitted } from '../../../support/waiting.ts'

/** A request handler that rejects with this status; what it is asked. */
async function handler(
  status: number,
): Promise<{ readonly url: string; readonly asked: string[] }> {
  const asked: string[] = []
  const http = createServer((question, response) => {
    let body = ''
    question.on('data', (chunk: Buffer) => (body += chunk.toString()))
    question.on('end', () => {
      asked.push(`${question.method} ${body.split(' ', 1)[0]}`)
      response.end(JSON.stringify({ action: 'reject', data: { status } }))
    })
  })
  http.listen(0, '127.0.0.1')
  await emitted(http, 'listening')
  onTestFinished(() => void http.close())
  return { asked, url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/` }
}

// Where applications connect.

test('address, port, admin: where they are listened for', async () => {
  const free = await freePort()
  const { adminAddress } = await start(`${contact} --address 127.0.0.1 --port ${free} --secret s`)
  expect(adminAddress).toEqual({ host: '127.0.0.1', port: free })
  expect((await start()).adminAddress.host).toBe('127.0.0.1')
})

test('secret: another one is refused', async () => {
  const program = await start()
  await application(program)
  await expect(application(program, undefined, 'other')).rejects.toThrow('')
})

test.runIf(process.platform === 'linux').each([
  ['--tcp-keepalive-interval 7', 7],
  ['', 45],
  ['--tcp-keepalive-interval 0', 0],
])('keepAliveSeconds: "%s" is %i s on the socket of an application', async (words, seconds) => {
  const program = await start(`${base} ${words}`)
  await application(program)
  const port = program.adminAddress.port.toString(16).toUpperCase().padStart(4, '0')
  // Columns of /proc/net/tcp: local and remote address, state (1: established), queues, timer (2:
  // keep-alive) and when.
  const line = new RegExp(`0100007F:${port} \\S+ 01 \\S+ (\\d\\d):(\\w+)`)
  const [, timer = '', left = ''] = line.exec(readFileSync('/proc/net/tcp', 'utf8')) ?? []
  expect(timer).toBe(seconds === 0 ? '00' : '02')
  const leftSeconds = Number.parseInt(left, 16) / 100
  expect(leftSeconds).toBeLessThanOrEqual(seconds)
  expect(leftSeconds).toBeGreaterThanOrEqual(Math.max(0, seconds - 5))
})

test.each([
  ['bytes', 9],
  ['characters', 6],
])('frameLength: %s', async (how, bodyLength) => {
  const program = await start(`${base} --frame-length ${how}`)
  const app = connect(program.adminAddress.port, '127.0.0.1')
  onTestFinished(() => void app.destroy())
  let got = Buffer.alloc(0)
  app.on('data', (bytes: Buffer) => (got = Buffer.concat([got, bytes])))
  const send = (text: string): void => void app.write(`${text.length}#${text}`)
  send('a|authenticate|cymru')
  await expect.poll(() => got.toString()).toContain('|OK|')
  send('b|route|message')
  await expect.poll(() => got.toString()).toContain('response|b|OK')
  const before = got.length
  const peer = await program.peer()
  peer.request('MESSAGE', peer.leg(program.uri('a')), { body: 'éééabc' })
  await expect.poll(() => got.toString()).toMatch(/éééabc$/)
  const frame = got.subarray(before).toString()
  const [, length = ''] = /^(\d+)#/.exec(frame) ?? []
  const payload = frame.slice(length.length + 1)
  const ofBody = how === 'bytes' ? Buffer.byteLength('éééabc') : 'éééabc'.length
  expect(ofBody).toBe(bodyLength)
  expect(Number(length)).toBe(how === 'bytes' ? Buffer.byteLength(payload) : payload.length)
})

test('handler: the application that waits there is connected to', async () => {
  const waiting = createTcpServer((socket) => void socket.destroy())
  waiting.listen(0, '127.0.0.1')
  await emitted(waiting, 'listening')
  onTestFinished(() => void waiting.close())
  const connected = emitted(waiting, 'connection')
  const { port } = waiting.address() as AddressInfo
  expect(await ask(await start(`${base} --handler tcp://127.0.0.1:${port}`))).toBe(480)
  await connected
})

test('httpHandler, httpMethod: what becomes of a request is asked there', async () => {
  const { url, asked } = await handler(486)
  expect(await ask(await start(`${base} --http-handler ${url}`))).toBe(486)
  expect(await ask(await start(`${base} --http-handler ${url} --http-method POST`))).toBe(486)
  expect(asked).toEqual(['GET ', 'POST OPTIONS'])
})

test('handlerSipMethod: each method has its own, or the one for all', async () => {
  const [one, all] = [await handler(404), await handler(486)]
  const program = await startWith(
    '',
    `<request-handlers><request-handler sip-method="REGISTER">${one.url}</request-handler>
    <request-handler>${all.url}</request-handler></request-handlers>`,
  )
  expect([await ask(program, [], { method: 'REGISTER' }), await ask(program)]).toEqual([404, 486])
})

// The fate of requests.

test('optionsUserAgent, rejectsRegisterWithoutRealm: answered by the server itself', async () => {
  const words = '--user-agent-options-auto-respond probe --reject-register-with-no-realm'
  const program = await start(`${base} ${words}`)
  expect(await ask(program, ['User-Agent: probe'])).toBe(200)
  expect(await ask(program, [], { method: 'REGISTER' })).toBe(403)
  expect(await ask(program, [], { method: 'REGISTER', uri: 'sip:example.com' })).toBe(503)
})

test('spammerHeader, spammerValue, spammerAction, spammerTcpAction: who gets 603, and who nothing', async () => {
  const header = (name: string) => `<header name="${name}"><value>bad</value></header>`
  const rules = (actions: string, name: string) => `<spammers ${actions}>${header(name)}</spammers>`
  const both = await startWith(rules('action="reject" tcp-action="reject"', 'User-Agent'))
  expect(await ask(both, ['User-Agent: is bad'])).toBe(603)
  expect(await ask(both, ['User-Agent: is bad'], { protocol: 'tcp' })).toBe(603)
  expect(await ask(both, ['User-Agent: is good'])).toBe(503)
  const silent = await startWith(rules('action="discard" tcp-action="reject"', 'User-Agent'))
  const peer = await silent.peer()
  const headers = ['User-Agent: bad']
  peer.request('OPTIONS', peer.leg(silent.uri('a')), { headers })
  peer.request('OPTIONS', peer.leg(silent.uri('a')))
  await peer.next(503)
  expect(peer.inbox).toEqual([])
  expect(await ask(silent, headers, { protocol: 'tcp' })).toBe(603)
  const to = await startWith(rules('action="reject"', 'To'))
  expect(await ask(to, [], { uri: to.uri('bad') })).toBe(603)
})

/** Whether the server hangs up on a connection at once. */
async function isClosed(program: SipServerProgram): Promise<boolean> {
  const socket = connect(program.port('tcp'), '127.0.0.1').on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  const peer = await program.peer()
  peer.request('OPTIONS', peer.leg(program.uri('a')))
  return Promise.race([
    closed(socket.resume()).then(() => true),
    peer.next(503).then(
      () => false,
      () => true,
    ),
  ])
}

test('blacklistFile: who stands there is not heard', async () => {
  const files = { none: '192.0.2.1', all: '127.0.0.0/8' }
  const serve = (name: string) =>
    SipServerProgram.start(`${base} --blacklist-file ${name}`, { files })
  expect(await isClosed(await serve('all'))).toBe(true)
  expect(await isClosed(await serve('none'))).toBe(false)
})

test('alwaysSend180: 180 follows 100', async () => {
  const program = await start(`${base} --always-send-180`)
  await application(program, (srf) => srf.invite(() => undefined))
  const caller = await program.peer()
  caller.request('INVITE', caller.leg(program.uri('a')), { body: sdp('a') })
  await caller.next(180)
})

test('defaultRefresher: who refreshes when the caller leaves it to us', async () => {
  const program = await startWith('<session-timers default-refresher="uas"/>')
  await application(program, (srf) =>
    srf.invite((request, response) => {
      void srf.createUAS(request, response, { localSdp: sdp('app') })
    }),
  )
  const caller = await program.peer()
  const headers = ['Session-Expires: 90', 'Supported: timer']
  caller.request('INVITE', caller.leg(program.uri('a')), { body: sdp('a'), headers })
  expect((await caller.next('200 INVITE')).get('Session-Expires')).toBe('90;refresher=uas')
})

test('t1, t2, t1x64: copies of a request to a silent peer, and when it is given up', async () => {
  const copies = async (t2: number): Promise<number> => {
    const timers = `<timers><t1>10</t1><t2>${t2}</t2><t1x64>640</t1x64></timers>`
    const srf = await application(await startWith(timers))
    const peer = await datagramSink()
    const sent = await srf.request(`sip:127.0.0.1:${peer.port}`, { method: 'OPTIONS' })
    expect((await responseTo(sent)).status).toBe(408)
    return peer.received.length
  }
  // Copies are sent at 0, 10, 30, 70, 150, 310 and 630 ms; with T2 each 20 ms.
  expect(await copies(4_000)).toBeLessThanOrEqual(8)
  expect(await copies(20)).toBeGreaterThan(10)
})

test('t4: for so long copies of an ACK are expected', async () => {
  const timers = '<timers><t4>50</t4></timers>'
  const metrics = '<monitoring><prometheus port="PORT">127.0.0.1</prometheus></monitoring>'
  const port = await freePort()
  const program = await startWith(timers, metrics.replace('PORT', String(port)))
  await application(program, (srf) => srf.invite((_request, response) => response.send(486)))
  const caller = await program.peer()
  const leg = caller.leg(program.uri('a'))
  caller.request('INVITE', leg, { body: sdp('a') })
  const busy = await caller.next(486)
  const ack = { ...leg, to: busy.get('To') }
  caller.send(
    caller
      .request('ACK', ack)
      .replace(/branch=[^\r]+/, /branch=[^\r]+/.exec(busy.get('Via'))?.[0] ?? ''),
  )
  const transactions = async (): Promise<string> => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    return /^drachtio_sofia_server_txns (\d+)/m.exec(text)?.[1] ?? ''
  }
  // 5 s by default.
  await expect.poll(transactions, { timeout: 4_000 }).toBe('0')
})

test('disablesNatDetection: a request in a dialog goes to the Contact, wherever the peer sent from', async () => {
  for (const isDisabled of [true, false]) {
    const program = await start(`${base} ${isDisabled ? '--disable-nat-detection' : ''}`)
    await application(program, (srf) =>
      srf.invite((request, response) => {
        void srf
          .createUAS(request, response, { localSdp: sdp('app') })
          .then((dialog) => dialog.destroy())
      }),
    )
    const caller = await program.peer()
    const place = { address: '127.0.0.1', port: program.port('udp'), advertisedPort: 0 }
    const elsewhere = await SipPeer.open({ protocol: 'udp', ...place, advertisedHost: '127.0.0.2' })
    onTestFinished(() => elsewhere.close())
    // As a phone behind NAT that does not know its public address.
    const leg = { ...caller.leg(program.uri('a')), cseq: 1 }
    caller.send(
      [
        `INVITE ${leg.uri} SIP/2.0`,
        'Via: SIP/2.0/UDP 10.9.9.9:5060;rport;branch=z9hG4bKnat',
        'Max-Forwards: 70',
        `From: ${leg.from}`,
        `To: ${leg.to}`,
        `Call-ID: ${leg.callId}`,
        'CSeq: 1 INVITE',
        `Contact: <${elsewhere.uri}>`,
        'Content-Length: 0',
        '',
        '',
      ].join('\r\n'),
    )
    caller.learn(leg, await caller.next('200 INVITE'))
    caller.request('ACK', leg)
    const receiver = isDisabled ? elsewhere : caller
    receiver.reply(await receiver.next('BYE'), 200)
  }
})
