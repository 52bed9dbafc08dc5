import fc from 'fast-check'
import { expect, test } from 'vitest'
import { checkDecision } from '../../../schema/rules/hook-decisions.ts'

const whyNot = (answer: unknown): string => {
  const checked = checkDecision('onInvite', answer)
  return checked.kind === 'wrong' ? checked.why : checked.kind
}

test('each field of a decision is taken, and numbers get their normal form', () => {
  const headers = { 'X-Crm-Id': '42', Subject: 'Order 7', 'P-Early-Media': 'supported' }
  expect(
    checkDecision('onInvite', {
      to: '+49 (30) 100-200',
      from: '+49.30.1',
      fromName: 'Grüße, "Shop"',
      carriers: [3, 'backup'],
      headers,
      tags: { crm: '42', 'fraud.score': '' },
      record: true,
      agent: undefined,
      set: null,
    }),
  ).toEqual({
    kind: 'decision',
    decision: {
      to: '+4930100200',
      from: '+49301',
      fromName: 'Grüße, "Shop"',
      carriers: [3, 'backup'],
      headers,
      tags: { crm: '42', 'fraud.score': '' },
      record: true,
    },
  })
  for (const target of [
    { set: 4 },
    { set: 'support' },
    { extension: '101' },
    { extension: '101@pbx.example' },
    { agent: 'front desk' },
    { uri: 'sip:+4930@partner.example:5070;transport=tcp' },
    { to: 'alice' },
  ])
    expect(checkDecision('onInvite', target)).toEqual({ kind: 'decision', decision: target })
})

test('no answer, and an answer without a field, decide nothing', () => {
  for (const answer of [undefined, null, {}, { to: undefined, headers: null }])
    expect(checkDecision('onInvite', answer)).toEqual({ kind: 'nothing' })
})

test('a refusal has a status from 400 to 699 that is no challenge, and stands beside tags only', () => {
  const refuse = { status: 603, reason: 'Not today' }
  const tags = { why: 'office hours' }
  expect(checkDecision('onInvite', { refuse, tags })).toEqual({
    kind: 'decision',
    decision: { refuse, tags },
  })
  expect(checkDecision('onRegister', { refuse: { status: 403 } }).kind).toBe('decision')
  for (const status of [399, 700, 401, 407, 486.5, '486', undefined])
    expect(whyNot({ refuse: { status } })).toMatch(/refuse has/)
  expect(whyNot({ refuse: { status: 486, reason: 'Busy\r\nX-Evil: 1' } })).toMatch(/line break/)
  expect(whyNot({ refuse: { status: 486, code: 1 } })).toMatch(/unknown field "code"/)
  expect(whyNot({ refuse, to: '1' })).toMatch(/refuse ends the call, and to stands beside it/)
})

test.each([
  [7, 'is a number where an object is expected'],
  ['reject', 'is a text where an object is expected'],
  [[], 'is a list where an object is expected'],
  [{ colour: 'red' }, 'has the unknown field "colour"'],
  [{ constructor: 1 }, 'has the unknown field "constructor"'],
  [JSON.parse('{"__proto__": {"to": "1"}}'), 'has the unknown field "__proto__"'],
  [{ to: 4930 }, 'to is a number where a text is expected'],
  [{ to: 'alice@evil.example' }, 'to is neither a telephone number nor a name'],
  [{ to: '1\r\nX: y' }, 'to is neither a telephone number nor a name'],
  [{ to: '' }, 'to is neither a telephone number nor a name'],
  [{ from: 'alice' }, 'from is no telephone number'],
  [{ fromName: 'x'.repeat(101) }, 'fromName has more than 100 characters'],
  [{ set: 0 }, 'set is no id'],
  [{ set: '' }, 'set is empty'],
  [{ set: 1, agent: 2 }, 'set and agent are two targets'],
  [{ carriers: [1], uri: 'sip:a@b.example' }, 'carriers and uri are two targets'],
  [{ carriers: [] }, 'carriers is empty'],
  [{ carriers: 'one' }, 'carriers is a text where a list is expected'],
  [{ carriers: [1, true] }, 'carriers has an entry 2 that is a boolean'],
  [{ carriers: Array.from({ length: 17 }, () => 1) }, 'carriers has more than 16 entries'],
  [{ extension: '101@a@b' }, 'extension is neither'],
  [{ uri: 'http://a.example' }, 'uri is no SIP URI'],
  [{ uri: 'sip:a@b.example?Route=%3Csip:c%3E' }, 'uri is no SIP URI, or has headers'],
  [{ uri: 'sip:a@b.example;maddr=c;maddr=d' }, 'uri is no SIP URI'],
  [{ tags: { 'a b': '1' } }, 'tags has a tag "a b" whose name'],
  [{ tags: JSON.parse('{"__proto__": "1"}') }, 'tags has a tag "__proto__" whose name'],
  [{ tags: { a: 1 } }, 'tags has a tag "a" that is a number'],
  [{ tags: { a: 'x'.repeat(129) } }, 'tags has a tag "a" that has more than 128 characters'],
  [{ record: 'yes' }, 'record is a text where true or false is expected'],
  [{ headers: { 'X-A': '1\r\nVia: x' } }, 'headers has a header "X-A" that has a line break'],
  [{ headers: { 'X-A\r\nVia': '1' } }, 'that is no name of a header'],
  [{ headers: { 'X-A': '1', 'x-a': '2' } }, 'headers has "x-a" twice'],
  [{ headers: { 'X-A': 'x'.repeat(257) } }, 'has more than 256 characters'],
])('the answer %j is refused in one sentence', (answer, why) => {
  expect(whyNot(answer)).toContain(why)
  expect(whyNot(answer)).toMatch(/^the answer of onInvite /)
})

test.each(
  [
    'Via V Route Record-Route Contact m Call-ID i CSeq From f To t Max-Forwards Authorization',
    'Proxy-Authorization Proxy-Require Content-Type c Content-Length l Identity y Privacy',
    'P-Asserted-Identity P-Preferred-Identity P-Charging-Vector Diversion History-Info',
    'Remote-Party-ID Require Supported Session-Expires Replaces Refer-To Referred-By',
    'X-Call-UUID X-Tollgate-Transfer content-disposition MIME-Version __proto__',
  ].flatMap((line) => line.split(' ')),
)('a hook may not set the header %s', (name) => {
  expect(whyNot({ headers: JSON.parse(`{"${name}": "1"}`) })).toMatch(/may not set|no name/)
})

test('an order of candidates names each once, and an attempt moves on or ends', () => {
  expect(checkDecision('onRoute', { order: [2, 0] })).toEqual({
    kind: 'decision',
    decision: { order: [2, 0] },
  })
  for (const order of [[], [0, 0], [-1], [0.5], ['0'], 'all'])
    expect(checkDecision('onRoute', { order }).kind).toBe('wrong')
  expect(checkDecision('onAttemptFailed', { failover: false }).kind).toBe('decision')
  expect(checkDecision('onAttemptFailed', { refuse: { status: 486 } }).kind).toBe('wrong')
})

test('whatever is answered, the check returns a value, and no text of it breaks a line', () => {
  const field = fc.constantFrom('to', 'from', 'fromName', 'uri', 'headers', 'tags', 'refuse', 'set')
  const answer = fc.oneof(fc.anything(), fc.dictionary(field, fc.anything()))
  fc.assert(
    fc.property(answer, (value) => {
      const checked = checkDecision('onInvite', value)
      if (checked.kind === 'wrong') expect(checked.why).not.toMatch(/[\r\n]/)
      if (checked.kind === 'decision')
        expect(JSON.stringify(Object.values(checked.decision))).not.toMatch(/\\[rn]/)
    }),
  )
})
