/**
 * The program as a whole, on real sockets, and what holds at once when it reads its configuration
 * again.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { OptionError } from '../../../../engine/sip-server/index.ts'
import { runProgram } from '../../../../engine/sip-server/program/program.ts'
import { programWorld, SipServerProgram, type Files } from '../../../support/sip-server-program.ts'
import { emitted } from '../../../support/waiting.ts'

async function ask(
  program: SipServerProgram,
  protocol: 'udp' | 'tcp',
  headers: readonly string[],
): Promise<string> {
  const peer = await program.peer(protocol)
  peer.request('OPTIONS', peer.leg(program.uri('a', protocol)), { headers })
  return (await peer.next(({ status }) => status >= 200)).startLine
}

const conf = `<drachtio>
  <admin port="PORT" secret="cymru">127.0.0.1</admin>
  <sip>
    <contacts><contact>sip:127.0.0.1:0;transport=udp,tcp</contact></contacts>
    <user-agent-options-auto-respond>probe</user-agent-options-auto-respond>
    <spammers action="reject" tcp-action="reject">
      <header name="User-Agent"><value>sipcli</value></header>
    </spammers>
    <udp-mtu>4096</udp-mtu>
  </sip>
  <logging><console/><loglevel>debug</loglevel></logging>
</drachtio>`

test('a file of drachtio-server is served as it says', async () => {
  const files = { 'd.xml': conf.replace('PORT', '9022') }
  const program = await SipServerProgram.start('-f d.xml --admin 127.0.0.1:0', { files })
  expect(program.printed[0]).toMatch(
    /^ready sip=udp\/127\.0\.0\.1:\d+,tcp\/127\.0\.0\.1:\d+ admin=127\.0\.0\.1:\d+$/,
  )
  expect(program.logged).toContainEqual(
    'debug warn these have no effect here: <sip/udp-mtu>, <logging/console>',
  )
  expect(await ask(program, 'udp', ['User-Agent: probe'])).toBe('SIP/2.0 200 OK')
  expect(await ask(program, 'tcp', ['User-Agent: sipcli/2'])).toBe('SIP/2.0 603 Decline')
  expect(await ask(program, 'udp', ['User-Agent: other'])).toBe('SIP/2.0 503 Service Unavailable')
})

test.each([
  ['-f absent.xml', 'cannot read absent.xml'],
  ['-f bad.xml', 'bad.xml: line 1: '],
  ['--secret s --daemon', '--daemon cannot be used: run it by systemd'],
  ['--listen udp/127.0.0.1:0', 'there is no secret'],
])('%s: %s', async (words, problem) => {
  const { world } = programWorld({ files: { 'bad.xml': '<drachtio>&' } })
  const failed = runProgram(words.split(' '), world)
  await expect(failed).rejects.toThrow(OptionError)
  await expect(failed).rejects.toThrow(problem)
})

const confWith = (sip: string, rest = ''): string => `<drachtio>
  <admin port="9022" secret="cymru">127.0.0.1</admin>
  <sip><contacts><contact>sip:127.0.0.1:0;transport=udp</contact></contacts>${sip}</sip>${rest}
</drachtio>`

const spammers = (value: string): string =>
  `<spammers action="reject"><header name="User-Agent"><value>${value}</value></header></spammers>`

async function start(text: string, words = '') {
  const files: Files = { 'd.xml': text }
  const program = await SipServerProgram.start(`-f d.xml --admin 127.0.0.1:0 ${words}`, { files })
  return {
    program,
    reread: (changed: string): void => {
      files['d.xml'] = changed
      program.reload()
    },
    /** The status that a request of this User-Agent gets. */
    ask: async (userAgent: string): Promise<number> => {
      const headers = [`User-Agent: ${userAgent}`]
      const peer = await program.peer()
      peer.request('OPTIONS', peer.leg(program.uri('a')), { headers })
      return (await peer.next(({ status }) => status > 199)).status
    },
  }
}

test('spammers, and whose OPTIONS get 200', async () => {
  const { reread, ask, program } = await start(confWith(spammers('scanner')))
  expect([await ask('scanner'), await ask('dialer'), await ask('probe')]).toEqual([603, 503, 503])
  const probe = '<user-agent-options-auto-respond>probe</user-agent-options-auto-respond>'
  reread(confWith(spammers('dialer') + probe))
  expect([await ask('scanner'), await ask('dialer'), await ask('probe')]).toEqual([503, 603, 200])
  expect(program.logged.at(-1)).toBe('info info the configuration was read again')
})

test('the level of the log, unless the command line has one', async () => {
  const level = (name: string): string =>
    confWith('', `<logging><loglevel>${name}</loglevel></logging>`)
  for (const [words, expected] of [
    ['', 'debug'],
    ['--loglevel warn', 'warn'],
  ] as const) {
    const { reread, program } = await start(level('error'), words)
    reread(level('debug'))
    expect(program.logged.at(-1)).toBe(`${expected} info the configuration was read again`)
  }
})

test('request handlers; what the old one is asked it still answers', async () => {
  const handler = async (status: number) => {
    const held: (() => void)[] = []
    const http = createServer((_question, response) => {
      held.push(() => response.end(JSON.stringify({ action: 'reject', data: { status } })))
    })
    http.listen(0, '127.0.0.1')
    await emitted(http, 'listening')
    onTestFinished(() => void http.close())
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
    const xml = `<request-handlers><request-handler>${url}</request-handler></request-handlers>`
    return { held, xml: confWith('', xml) }
  }
  const [old, young] = [await handler(486), await handler(404)]
  const { reread, ask } = await start(old.xml)
  const first = ask('a')
  await expect.poll(() => old.held.length).toBe(1)
  reread(young.xml)
  const second = ask('b')
  await expect.poll(() => young.held.length).toBe(1)
  young.held[0]?.()
  expect(await second).toBe(404)
  old.held[0]?.()
  expect(await first).toBe(486)
})

test('what cannot hold before a restart is named, without its value', async () => {
  const timer = (ms: number): string => confWith(`<timers><t1>${ms}</t1></timers>`)
  const { reread, program } = await start(timer(500))
  reread(timer(400).replace('cymru', 'other').replace('127.0.0.1:0', '127.0.0.1:5999'))
  const names = ['--contact', '--secret', '<sip/timers/t1>']
  expect(program.logged.slice(-4, -1)).toEqual(
    names.map((name) => expect.stringContaining(`warn ${name} has changed`) as string),
  )
})

test.each([
  ['is no XML', '<drachtio>&'],
  ['has a value that is not allowed', confWith('<timers><t1>soon</t1></timers>')],
])('a file that %s changes nothing', async (_what, text) => {
  const { reread, ask, program } = await start(confWith(spammers('scanner')))
  reread(text)
  expect(program.logged.at(-1)).toMatch(/^info error the configuration cannot be read again/)
  expect(await ask('scanner')).toBe(603)
})
