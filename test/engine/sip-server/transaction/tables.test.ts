import { describe, expect, test } from 'vitest'
import { inviteClient, nonInviteClient } from '../../../../engine/sip-server/transaction/client.ts'
import { inviteServer, nonInviteServer } from '../../../../engine/sip-server/transaction/server.ts'
import type { Table } from '../../../../engine/sip-server/transaction/machine.ts'

const machines: [string, Table<string, string, string>, string][] = [
  ['INVITE client', inviteClient, 'calling'],
  ['INVITE server', inviteServer, 'proceeding'],
  ['non-INVITE client', nonInviteClient, 'trying'],
  ['non-INVITE server', nonInviteServer, 'trying'],
]

describe.each(machines)('the %s machine', (_name, table, start) => {
  test('reaches every one of its states from the first', () => {
    const reached = new Set([start])
    for (const state of reached)
      for (const step of Object.values(table[state] ?? {})) if (step) reached.add(step.to)
    expect([...reached].toSorted()).toEqual(Object.keys(table).toSorted())
  })

  test('can end from every state', () => {
    for (const state of Object.keys(table)) {
      const reached = new Set([state])
      for (const next of reached)
        for (const step of Object.values(table[next] ?? {})) if (step) reached.add(step.to)
      expect(reached.has('terminated')).toBe(true)
    }
  })

  test('does nothing any more once it has terminated', () => {
    expect(table['terminated']).toEqual({})
  })
})
