import { expect, test } from 'vitest'
import { schemaFindings } from './migrations.js'

test('tables of this version are no finding, newer and older ones are, each with what mends it', () => {
  expect(schemaFindings(3, 3)).toEqual([])
  expect(schemaFindings(4, 3)).toMatchObject([{ kind: 'migrations', mend: 'Deploy the newer version here too.' }])
  expect(schemaFindings(2, 3)).toMatchObject([
    {
      text: 'The tables have schema version 2, and this process knows version 3.',
      effect: expect.stringContaining('Migrations are pending'),
      mend: expect.stringContaining('npx millrace migrate'),
    },
  ])
})
