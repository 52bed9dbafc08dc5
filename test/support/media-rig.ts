/** Call control in memory with two relays, and a policy that a test sets. */
import { onTestFinished } from 'vitest'
import { createMedia } from '../../engine/media/create-media.ts'
import type { MediaPolicy, MediaRules } from '../../schema/contracts/field-values.ts'
import type { CallRigOptions } from './call-rig-options.ts'
import { startCallRig } from './call-rig.ts'
import { MediaRelay, relaysOf } from './media-relay.ts'

export interface MediaRigOptions extends CallRigOptions {
  readonly policy?: MediaPolicy
  /** The media rules of every dispatcher set. */
  readonly setRules?: MediaRules
  /** Whether calls may be recorded. Default: they may not. */
  readonly isRecorded?: boolean
  /** The relays of the process before. */
  readonly relays?: readonly MediaRelay[]
}

/** It ends with its test. */
export async function startMediaRig({
  policy = 'anchor',
  setRules,
  isRecorded = false,
  relays,
  ...options
}: MediaRigOptions = {}) {
  let all = relays ?? []
  const rig = await startCallRig({
    ...options,
    media: ({ calls, deadlines, now, schedule }) => {
      if (all.length === 0)
        all = [1, 2].map((n) => new MediaRelay(`relay-${n}:22222`, `10.99.0.${n}`, schedule))
      const media = createMedia(
        {
          relays: relaysOf(...all),
          calls,
          ...(isRecorded && { recordings: { mayRecord: () => true, mustRecord: () => false } }),
          routing: { mediaOf: none },
          dispatcher: { setRecord: () => ({ media: setRules }) },
          registrar: { extensionAt: none },
        },
        {
          config: { mediaPolicy: policy, databasePath: 'test', relays: [{ host: 'relays' }] },
          deadlines,
          now,
          databaseId: 'test',
          hosts: { addressesOf: () => all.map(({ address }) => address) },
          log: () => undefined,
          randomBytes: (size) => Buffer.alloc(size, relays ? 2 : 1),
        },
      )
      if (media === undefined) throw new Error('no relays')
      return media
    },
  })
  onTestFinished(() => rig.stop())
  const [relay, other] = all
  if (relay === undefined || other === undefined) throw new Error('two relays are needed')
  return {
    ...rig,
    relay,
    other,
    relays: all,
    /** Nothing of any call is left anywhere, nor at the relays. */
    idle: async (): Promise<void> => {
      // Relays are told of ended sessions at the next tick.
      await rig.settle()
      await rig.advance(100)
      await rig.idle()
      await rig.settle()
      const left = all.flatMap(({ sessions, complaints }) => [...sessions.keys(), ...complaints])
      if (left.length > 0) throw new Error(`left at the relays: ${left.join(', ')}`)
    },
  }
}

export type MediaRig = Awaited<ReturnType<typeof startMediaRig>>

const none = (): undefined => undefined

/** The place that a description names: `address:port`. */
export function placeIn(sdp: string): string {
  const [, address] = /^c=IN IP4 (\S+)/m.exec(sdp) ?? []
  const [, port] = /^m=audio (\d+)/m.exec(sdp) ?? []
  return `${address}:${port}`
}
