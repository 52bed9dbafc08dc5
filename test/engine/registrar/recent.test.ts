import { expect, test } from 'vitest'
import { Recent } from '../../../engine/registrar/recent.ts'

function counting(max: number) {
  const asked: string[] = []
  const recent = new Recent(max, (question) => {
    asked.push(question)
    return question === 'unknown' ? undefined : question.toUpperCase()
  })
  return { asked, recent }
}

test('a question is worked out once, until it is forgotten', () => {
  const { asked, recent } = counting(2)
  expect([recent.get('a'), recent.get('a')]).toEqual(['A', 'A'])
  expect(asked).toEqual(['a'])
  recent.forget()
  recent.get('a')
  expect(asked).toEqual(['a', 'a'])
})

test('the oldest answer gives way to the newest; that there is none is not remembered', () => {
  const { asked, recent } = counting(2)
  for (const question of ['a', 'b', 'unknown', 'unknown', 'c', 'b', 'c', 'a']) recent.get(question)
  expect(asked).toEqual(['a', 'b', 'unknown', 'unknown', 'c', 'a'])
})

test('a question that is too long is answered and not remembered', () => {
  const { asked, recent } = counting(2)
  const long = 'a'.repeat(1_001)
  expect([recent.get(long), recent.get(long)]).toEqual([long.toUpperCase(), long.toUpperCase()])
  expect(asked).toHaveLength(2)
})
