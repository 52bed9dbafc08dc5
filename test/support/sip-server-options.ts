/**
 * The things that tests of the options of the SIP server share: the program with some of them, an
 * application, a question.
 */
import { onTestFinished } from 'vitest'
import { SipServerProgram } from './sip-server-program.ts'
import { connectByTcp, type Srf } from './srf.ts'

export type Environment = Readonly<Record<string, string>>

export const contact = '--contact sip:127.0.0.1:0;transport=udp,tcp'
export const admin = '--admin 127.0.0.1:0'
export const base = `${contact} ${admin} --secret cymru`

export const start = (words = base, environment: Environment = {}): Promise<SipServerProgram> =>
  SipServerProgram.start(words, { environment })

/** Starts the program with a file whose `<sip>` says `sip`. */
export const startWith = (sip: string, rest = ''): Promise<SipServerProgram> =>
  SipServerProgram.start('-f d.xml --admin 127.0.0.1:0', {
    files: {
      'd.xml': `<drachtio><admin secret="cymru">127.0.0.1</admin>
        <sip><contacts><contact>sip:127.0.0.1:0;transport=udp,tcp</contact></contacts>${sip}</sip>${rest}</drachtio>`,
    },
  })

export async function application(
  program: SipServerProgram,
  prepare: (srf: Srf) => void = () => undefined,
  secret = 'cymru',
): Promise<Srf> {
  const app = await connectByTcp(program, { secret }, prepare)
  onTestFinished(() => app.close())
  return app.srf
}

interface Question {
  readonly protocol?: 'udp' | 'tcp'
  readonly method?: string
  readonly uri?: string
}

/** The status of the answer to a request from outside. */
export async function ask(
  program: SipServerProgram,
  headers: readonly string[] = [],
  { protocol = 'udp', method = 'OPTIONS', uri = program.uri('a', protocol) }: Question = {},
): Promise<number> {
  const peer = await program.peer(protocol)
  peer.request(method, peer.leg(uri), { headers })
  return (await peer.next(({ status }) => status > 199)).status
}

/** The address in Via of a request that an application sends. */
export async function shownAddress(program: SipServerProgram): Promise<string> {
  const srf = await application(program)
  const peer = await program.peer()
  void srf.request(peer.uri, { method: 'OPTIONS' })
  return /UDP ([^:;]+)/.exec((await peer.next('OPTIONS')).get('Via'))?.[1] ?? ''
}
