/**
 * The machine of calls without anything around it: events in, commands out, its timers on a clock
 * that a test moves.
 */
import { handle } from '../../engine/call/call-machine/machine.ts'
import { beginInvitedCall } from '../../engine/call/call-machine/call.ts'
import type {
  CallCommand,
  MachineEvent,
  MachineInputs,
  Timer,
} from '../../engine/call/call-machine/protocol.ts'
import { emptyWorld, type Call, type World } from '../../engine/call/call-machine/state.ts'
import type { IncomingInvite } from '../../engine/call/inbound/incoming-invite.ts'
import type { CallDestination } from '../../engine/call/inbound/route.ts'
import { HeaderFilter } from '../../engine/call/sip-headers.ts'
import type { SipResponse } from '../../engine/call/signalling.ts'

export const sampleStart = (callUuid = 'u') => ({
  callUuid,
  callId: `call-id-of-${callUuid}`,
  callerNumber: '1',
  callerName: null,
  calledNumber: '2',
  sourceAddress: '10.0.0.1:5060',
  startedAt: 0,
})

export const sampleInvite = (callUuid: string, body: string | undefined): IncomingInvite => ({
  callUuid,
  callId: `call-id-of-${callUuid}`,
  headers: {},
  body,
  origin: { kind: 'trusted' },
  from: { name: '', user: '1', host: 'h', number: '1' },
  domain: 'h',
  hopsLeft: 69,
  callerNumber: '1',
  callerName: null,
  calledNumber: '2',
  calledUser: '2',
})

export const response = (status: number, body?: string): SipResponse => ({
  status,
  reason: `reason ${status}`,
  headers: {},
  body,
  peer: '10.0.0.2:5060',
})

export class CallMachine {
  world: World = emptyWorld('sbc-1')
  now = 0
  /** Every command so far, in order. */
  readonly commands: CallCommand[] = []
  readonly #timers = new Map<string, { readonly timer: Timer; readonly at: number }>()
  readonly #inputs: Omit<MachineInputs, 'now'> = {
    server: { lagMs: 0, reportsTrying: true, isRemote: false },
    filter: new HeaderFilter({ passX: new Set(), ownHost: () => 'sbc.example' }),
    timing: {
      nodeTimeoutMs: 1_500,
      nodeProgressTimeoutMs: 6_000,
      ringTimeoutMs: 180_000,
      retryAfterSeconds: 5,
    },
  }

  /** Lets an event happen; returns the commands that it leads to. */
  event(event: MachineEvent): readonly CallCommand[] {
    const commands = handle(this.world, event, { ...this.#inputs, now: this.now })
    this.commands.push(...commands)
    for (const command of commands) {
      if (command.type === 'startTimer')
        this.#timers.set(JSON.stringify(command.timer), { timer: command.timer, at: command.at })
      if (command.type === 'stopTimer') this.#timers.delete(JSON.stringify(command.timer))
    }
    return commands
  }

  /** How many timers run. */
  get timers(): number {
    return this.#timers.size
  }

  /** When the next timer is due. */
  get nextTimerAt(): number {
    return Math.min(...[...this.#timers.values()].map(({ at }) => at))
  }

  /** Moves the clock, and lets the timers that are due happen in their order. */
  advanceTo(now: number): readonly CallCommand[] {
    const commands: CallCommand[] = []
    for (;;) {
      const [next] = [...this.#timers].toSorted(([, a], [, b]) => a.at - b.at)
      if (next === undefined || next[1].at > now) break
      const [key, { timer, at }] = next
      this.#timers.delete(key)
      this.now = Math.max(this.now, at)
      commands.push(...this.event({ type: 'timer', timer }))
    }
    this.now = now
    return commands
  }

  call(callUuid = 'u'): Call {
    const call = this.world.calls.get(callUuid)
    if (call === undefined) throw new Error(`no call ${callUuid}`)
    return call
  }

  /**
   * A call that an INVITE with an offer has begun, and that may go on. Returns the leg of its
   * caller.
   */
  invited(grantedSeconds: number | null = null, callUuid = 'u', offer?: string): string {
    const leg = beginInvitedCall(
      this.world,
      { start: { ...sampleStart(callUuid), startedAt: this.now }, stampOffsetMs: 0 },
      { callerTag: 'a', offer, isReliable: false, isPhone: false },
    )
    this.event({
      type: 'admit',
      callUuid,
      origin: { kind: 'trusted' },
      direction: 'inbound',
      account: null,
      grantedSeconds,
      isFree: false,
      isEmergency: false,
      notes: [],
    })
    return leg.id
  }

  dial(
    candidates: readonly CallDestination[],
    callUuid = 'u',
    offer?: string,
  ): readonly CallCommand[] {
    const route = { kind: 'candidates', direction: 'inbound', candidates } as const
    const invite = sampleInvite(callUuid, offer)
    return this.event({ type: 'dial', callUuid, route, invite, isEmergency: false })
  }

  /** An answered call between a caller and a node; its legs. */
  answered(
    grantedSeconds: number | null,
    node: CallDestination,
  ): { caller: string; callee: string } {
    const caller = this.invited(grantedSeconds, 'u', 'offer')
    this.dial([node], 'u', 'offer')
    const callee = this.call().dialing?.attempts[0]?.legId ?? ''
    const ids = (leg: string) => ({ callId: leg, localTag: 'l', remoteTag: 'r', media: leg })
    this.event({ type: 'sent', legId: callee, callId: callee })
    this.event({
      type: 'answered',
      legId: callee,
      dialog: ids(callee),
      response: response(200, 'answer'),
    })
    this.event({ type: 'journalled', callUuid: 'u', isStored: true })
    this.event({ type: 'accepted', legId: caller, dialog: ids(caller) })
    this.event({ type: 'ack', legId: caller, body: undefined })
    return { caller, callee }
  }
}
